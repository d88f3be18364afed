#include <fmt/format.h>

#include "calibration/measure/make_job.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/bind/describe.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/plan/compare.h"
#include "estimator/plan/estimate.h"
#include "estimator/plan/shaped_programs.h"
#include "estimator/read/describe.h"

namespace headroom::cli {
namespace {

std::string_view text_at(const shadow::Trace& t, std::int32_t i) {
  return i >= 0 ? std::string_view(t.texts[static_cast<std::size_t>(i)]) : std::string_view();
}

std::string trace_text(const shadow::Trace& t, const Program& p) {
  std::string out;
  for (const auto& e : t.events) {
    using Kind = shadow::TraceEvent::Kind;
    if (e.kind == Kind::phase) {
      out += fmt::format("phase {} {}\n", name_of(e.phase), e.index);
      continue;
    }
    if (e.kind == Kind::cudnn) {
      out += "  cuDNN is loaded\n";
      continue;
    }
    const auto& b = t.blocks[static_cast<std::size_t>(e.index)];
    if (e.kind == Kind::becomes) {
      out += fmt::format("  = {:<8} {}\n", e.index, name_of(e.category));
      continue;
    }
    out += fmt::format("  {} {:<8} {:>14}", e.kind == Kind::alloc ? '+' : '-', e.index, b.bytes.count());
    if (e.kind == Kind::alloc) {
      const std::string_view module = p.module_path(b.module);
      out += "  " + std::string(name_of(b.category));
      for (const std::string_view s : {text_at(t, b.op), text_at(t, b.name), text_at(t, b.site), module})
        if (!s.empty()) out += "  " + printable(s);
    }
    out += "\n";
  }
  return out;
}

std::string timeline_text(const Timeline& t) {
  std::string out = fmt::format("{:<5} {:<10} {:>16} {:>16} {:>16} {:>16}\n", "step", "phase", "allocated peak",
                                "reserved peak", "allocated end", "reserved end");
  for (const PhaseFigures& p : t.phases)
    out += fmt::format("{:<5} {:<10} {:>16} {:>16} {:>16} {:>16}\n", p.step, name_of(p.phase), p.allocated_peak.count(),
                       p.reserved_peak.count(), p.allocated_end.count(), p.reserved_end.count());
  return out;
}

}  // namespace

int run_inspect(const Options& o) {
  const std::string& file = model_file(o);
  if (o.stage.empty() && !o.against.empty()) {
    Stages stages;
    estimate(file, scenario_of(o), &stages);
    const auto histories = read_histories(o.against);
    if (histories.empty()) throw bad_input("no events in the recording", o.against);
    write_result(
        describe(compare(step_events(*stages.trace, *stages.programs[0], -1), recorded_events(histories[0])), 20),
        o.output);
    return 0;
  }
  if (o.stage.empty())
    throw usage_error("headroom inspect wants --stage", "",
                      "graph | shapes | program | job | trace | timeline; or --against TRACE");
  const Scenario s = scenario_of(o);
  std::string out;
  if (o.stage == "job") {
    out = job_text(make_job(shaped_programs(read_model(file), s), s));
  } else if (o.stage == "graph") {
    out = describe(read_model(file));
  } else if (o.stage == "shapes" || o.stage == "program") {
    const Model model = read_model(file);
    const ShapedGraph graph =
        bind(model, {.batch = s.batch, .sequence = s.sequence, .dims = s.dims, .shapes = s.shapes});
    out = o.stage == "shapes" ? describe(graph) : describe(recover(graph, recover_options(s)));
  } else {
    Stages stages;
    estimate(file, s, &stages);
    out = o.stage == "trace" ? trace_text(*stages.trace, *stages.programs[0]) : timeline_text(stages.timeline);
  }
  write_result(out, o.output);
  return 0;
}

}  // namespace headroom::cli
