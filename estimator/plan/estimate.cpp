#include "estimator/plan/estimate.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "estimator/allocate/async.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/plan/device_memory.h"
#include "estimator/plan/estimator.h"
#include "estimator/plan/owners.h"
#include "estimator/plan/timeline_beside.h"
#include "estimator/step/labels.h"
#include "estimator/step/session.h"

namespace headroom {
namespace {

/// Tensors listed at the peak.
constexpr std::size_t listed_tensors = 20;

std::string text_at(const shadow::Trace& t, std::int32_t i) {
  return i >= 0 ? t.texts[static_cast<std::size_t>(i)] : std::string();
}

ModelFacts facts_of(const Model& model, const Program& program, const Scenario& s) {
  ModelFacts f;
  f.name = model.path.filename().string();
  f.path = model.path.string();
  f.nodes = static_cast<std::int64_t>(model.graph().nodes.size());
  f.hash = model.hash();
  const auto trainable = trainable_parameters(program, s);
  const DType cast = s.module_dtype();
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter& p = program.parameters[i];
    const std::int64_t n = element_count(p.dims);
    const Bytes bytes = bytes_of(cast != DType::undefined && is_float(p.dtype) ? cast : p.dtype, n);
    if (p.buffer) {
      f.buffer_bytes += bytes;
      continue;
    }
    f.parameters = checked_add(f.parameters, n);
    if (trainable[i]) f.trainable = checked_add(f.trainable, n);
    f.weight_bytes += bytes;
  }
  return f;
}

/// Of the allocation that is event `event`.
RunPlace place_of(const shadow::Trace& trace, std::size_t event, const Program& program) {
  const auto& block = trace.blocks[static_cast<std::size_t>(trace.events[event].index)];
  return {.phase = block.phase,
          .step = block.step,
          .node = text_at(trace, block.site >= 0 ? block.site : block.name),
          .op = text_at(trace, block.op),
          .module = std::string(program.module_path(block.module))};
}

void describe_peak(Estimate& e, const shadow::Trace& trace, const Timeline& t, const Program& program) {
  const std::size_t at = t.peak_event;
  Bytes sum;
  std::vector<LiveBlock> live = live_blocks(trace, at);
  for (const LiveBlock& b : live) {
    const Bytes bytes = trace.blocks[static_cast<std::size_t>(b.block)].bytes;
    e.categories[static_cast<std::size_t>(b.category)] += bytes;
    sum += bytes;
  }
  e.rounding = t.allocated_peak - sum;
  e.owners = owners_of(live, trace, program);
  if (trace.events.empty()) return;
  e.at = place_of(trace, at, program);
  const std::size_t shown = std::min(listed_tensors, live.size());
  std::partial_sort(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(shown), live.end(),
                    [&](const LiveBlock& a, const LiveBlock& b) {
                      const auto &x = trace.blocks[static_cast<std::size_t>(a.block)],
                                 &y = trace.blocks[static_cast<std::size_t>(b.block)];
                      return x.bytes != y.bytes ? x.bytes > y.bytes : a.block < b.block;
                    });
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& b = trace.blocks[static_cast<std::size_t>(live[i].block)];
    e.largest.push_back({.bytes = b.bytes,
                         .category = live[i].category,
                         .name = b.name >= 0 ? text_at(trace, b.name) : text_at(trace, b.site),
                         .op = text_at(trace, b.op),
                         .module = std::string(program.module_path(b.module))});
  }
}

void add_resident(Estimate& e, const shadow::Trace& trace) {
  // Optimizer state and gradients, whenever they live: each block once.
  for (const auto& b : trace.blocks)
    if (b.category == Category::optimizer_state) e.optimizer_state_bytes += b.bytes;
  Bytes now;
  std::vector<char> gradient(trace.blocks.size());
  for (const auto& ev : trace.events) {
    const auto i = static_cast<std::size_t>(ev.index);
    if (ev.kind == shadow::TraceEvent::Kind::becomes && ev.category == Category::gradients && !gradient[i]) {
      gradient[i] = 1;
      now += trace.blocks[i].bytes;
      e.gradient_bytes = std::max(e.gradient_bytes, now);
    } else if (ev.kind == shadow::TraceEvent::Kind::free && gradient[i]) {
      gradient[i] = 0;
      now -= trace.blocks[i].bytes;
    }
  }
}

void add_margin(Estimate& e, std::string code, Bytes allocated, Bytes reserved, Bytes device) {
  e.margins.push_back({std::move(code), allocated, reserved, device});
  e.margin_allocated += allocated;
  e.margin_reserved += reserved;
  e.margin_device += device;
}

void add_margins(Estimate& e, const DeviceMemory& memory) {
  std::vector<std::pair<std::string, Bytes>> by_code;
  for (const Diagnostic& d : e.diagnostics) {
    if (d.bound.count() == 0) continue;
    const auto found = std::find_if(by_code.begin(), by_code.end(), [&](const auto& c) { return c.first == d.code; });
    if (found == by_code.end())
      by_code.emplace_back(d.code, d.bound);
    else
      found->second += d.bound;
  }
  for (const auto& [code, bytes] : by_code) {
    const Bytes segment = bytes.rounded_up(2 * MiB);
    add_margin(e, code, bytes, segment, segment);
  }
  if (memory.uncertainty.count() > 0) add_margin(e, "context", {}, {}, memory.uncertainty);
}

/// Inference drops its outputs unless the scenario says otherwise; a loop that keeps them holds the last ones too.
void note_outputs(Estimate& e, const Program& program) {
  if (e.scenario.training() || e.scenario.outputs) return;
  Bytes kept;
  const DType cast = e.scenario.module_dtype();
  for (const ProgramOutput& o : program.outputs)
    kept += bytes_of(cast != DType::undefined && is_float(o.dtype) ? cast : o.dtype, element_count(o.dims));
  e.diagnostics.push_back({.code = "outputs-assumed",
                           .severity = Severity::info,
                           .node = {},
                           .message = "outputs are dropped before the next forward; --outputs keep holds them longer",
                           .bound = kept});
}

/// Inference is taken as a validation loop, whose labels lie on the GPU.
void note_labels(Estimate& e, const Program& program) {
  if (e.scenario.training()) return;
  if (const auto labels = labels_of(program, e.scenario))
    e.diagnostics.push_back({.code = "labels-assumed",
                             .severity = Severity::info,
                             .node = {},
                             .message = "labels lie on the GPU, " +
                                        human(bytes_of(labels->dtype, element_count(labels->dims))) +
                                        ", as in validation; --loss none: there are none"});
}

/// What the rules still missed on the measured runs (tests/truth/accuracy.md, p95 of each figure's error), over and
/// above the parts that are named.
void add_residual(Estimate& e, const Timeline& t, AllocatorBackend backend) {
  const auto share = [](Bytes b, std::int64_t per_mille) { return Bytes(b.count() / 1000 * per_mille); };
  const Bytes allocated = share(t.allocated_peak, 4) + Bytes(1 * MiB),
              reserved = share(t.reserved_peak, 20) + Bytes(20 * MiB);
  add_margin(e, "measured-residual", allocated, reserved, reserved);
  if (backend == AllocatorBackend::native) return;
  const Bytes bound(
      static_cast<std::int64_t>(AsyncAllocator::reserved_bound * static_cast<double>(t.reserved_peak.count())));
  add_margin(e, "async-reserved", {}, bound, bound);
  e.diagnostics.push_back(
      {.code = "async-reserved",
       .severity = Severity::info,
       .node = {},
       .message = "cudaMallocAsync: reserved is a model of the driver's pool, bounded by measurement"});
}

/// Runs the trace on the scenario's card: the figures' timeline, and whether it fits with the margin held back.
/// `beside`: where the trace was served already, if it was.
void run_on_device(Estimate& e, Stages& s, const DeviceMemory& memory, std::optional<TimelineBeside>& beside) {
  AllocatorOptions options = allocator_options(e.scenario);
  const auto run = [&](const AllocatorDevice& device) {
    return run_timeline(*s.trace, *make_allocator(options, device));
  };
  const Bytes total = e.scenario.device.total_bytes;
  s.device = {.total = total, .outside = memory.context};
  std::optional<Timeline> served;
  if (beside) served = beside->finish(*s.trace);
  s.timeline = served ? *std::move(served) : run(s.device);
  if (total.count() == 0) {
    add_residual(e, s.timeline, options.backend);
    return;
  }
  const double fraction = options.per_process_memory_fraction;
  const Bytes allowed =
      std::min(total - memory.context, Bytes(static_cast<std::int64_t>(fraction * static_cast<double>(total.count()))));
  e.out_of_memory = s.timeline.out_of_memory;
  if (e.out_of_memory) {
    e.oom_text = s.timeline.oom.text;
    e.oom_at = place_of(*s.trace, s.timeline.oom_event, *s.programs[0]);
    options.per_process_memory_fraction = 1;
    s.device.total = {};
    s.timeline = run(s.device);
  }
  if (s.timeline.refused_workspaces > 0)
    e.diagnostics.push_back({.code = "conv-workspace-refused",
                             .severity = Severity::warning,
                             .node = {},
                             .message = std::to_string(s.timeline.refused_workspaces) +
                                        " convolution workspaces find no room: PyTorch tries other algorithms there, "
                                        "which are counted without workspace"});
  add_residual(e, s.timeline, options.backend);
  e.spare = allowed - s.timeline.reserved_peak - e.margin_device;
  // Short of memory the allocator may still get along, with less in its cache.
  const auto fits_with_margin = [&] {
    const Timeline t = run({.total = total, .outside = memory.context + e.margin_device});
    return !t.out_of_memory && t.refused_workspaces == 0;
  };
  e.fits = !e.out_of_memory && (e.spare.count() >= 0 || fits_with_margin());
  e.frees_cache = *e.fits && e.spare.count() < 0;
  if (*e.fits) e.spare = std::max(e.spare, Bytes());
}

/// Programs and traces kept are so many that a large model's do not fill the machine's memory: about `nodes` of graphs.
std::size_t kept_of(const Model& model, std::size_t nodes, std::size_t most) {
  return std::clamp<std::size_t>(nodes / std::max<std::size_t>(model.graph().nodes.size(), 1), 2, most);
}

/// Once the programs that the file's metadata tells could not run, for `error`: those that its operators alone tell.
std::shared_ptr<const ShapedPrograms> programs_of_operators(const Model& model, const Scenario& scenario,
                                                            const Error& error) {
  if (error.code() != Exit::bad_input && error.code() != Exit::internal) throw error;
  ShapedPrograms out;
  try {
    out = shaped_programs(model, scenario, false);
  } catch (const Error&) {
    throw error;
  }
  auto told = std::make_shared<Program>(*out.programs[0]);
  told->diagnostics.push_back({.code = "text-unusable",
                               .severity = Severity::warning,
                               .message = std::string("the calls that the export's metadata tells cannot run (") +
                                          error.what() + "); the operators alone tell them"});
  for (const Program*& p : out.order)
    if (p == out.programs[0].get()) p = told.get();
  out.programs[0] = std::move(told);
  return std::make_shared<const ShapedPrograms>(std::move(out));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

AllocatorOptions allocator_options(const Scenario& scenario) {
  return parse_allocator_options(scenario.alloc_conf, parse_torch_version(scenario.torch_version));
}

Estimate estimate(const std::filesystem::path& path, const Scenario& scenario, Stages* stages,
                  std::shared_ptr<const Model> model) {
  const auto start = std::chrono::steady_clock::now();
  const auto table = std::async([&] { return aten::table_for(scenario.torch_version); });  // beside the file
  Estimator estimator(model ? std::move(model) : std::make_shared<const Model>(read_model(path)));
  Estimate e = estimator.estimate(scenario, stages);
  e.seconds = seconds_since(start);
  return e;
}

Estimator::Estimator(const std::filesystem::path& path) : Estimator(std::make_shared<const Model>(read_model(path))) {}

Estimator::Estimator(std::shared_ptr<const Model> model)
    : model_(std::move(model)), programs_(kept_of(*model_, 100'000, 32)), traces_(kept_of(*model_, 20'000, 8)) {}

std::shared_ptr<const ShapedPrograms> Estimator::programs(const Scenario& scenario) {
  return programs_.get(shape_part(scenario), [&] { return shaped_programs(*model_, scenario); });
}

void Estimator::know(const Scenario& scenario, StepTrace trace) {
  traces_.get(step_part(scenario), [&] { return std::move(trace); });
}

Estimate Estimator::estimate(const Scenario& scenario, Stages* stages) {
  const auto start = std::chrono::steady_clock::now();
  std::shared_ptr<const ShapedPrograms> programs = this->programs(scenario);
  std::optional<TimelineBeside> beside;
  const auto traced = [&] {
    if (scenario.device.total_bytes.count() > 0) return step_trace(*programs, scenario);
    beside.emplace(allocator_options(scenario));
    return step_trace(*programs, scenario, nullptr, [&](const shadow::Trace& t) { beside->more(t); });
  };
  std::shared_ptr<const StepTrace> step;
  try {
    step = traces_.get(step_part(scenario), traced);
  } catch (const Error& error) {
    programs = programs_of_operators(*model_, scenario, error);
    try {
      step = std::make_shared<const StepTrace>(traced());
    } catch (const Error&) {
      throw error;
    }
  }
  Stages own;
  Stages& s = stages ? *stages : own;
  s = {.model = model_,
       .graphs = programs->graphs,
       .programs = programs->programs,
       .trace = std::shared_ptr<const shadow::Trace>(step, &step->trace)};
  const Program& program = *s.programs[0];

  Estimate e;
  e.scenario = scenario;
  for (const Diagnostics* d :
       {&model_->diagnostics, &s.graphs[0]->diagnostics, &program.diagnostics, &step->diagnostics})
    e.diagnostics.insert(e.diagnostics.end(), d->begin(), d->end());
  const auto profile = profile_of(scenario);
  if (profile) {
    const Diagnostics open = profile_diagnostics(*profile, scenario);
    e.diagnostics.insert(e.diagnostics.end(), open.begin(), open.end());
  }
  const DeviceMemory memory = device_memory(scenario.device, step->uses_blas, profile.get());
  note_outputs(e, program);
  note_labels(e, program);
  add_margins(e, memory);
  run_on_device(e, s, memory, beside);

  e.model = facts_of(*model_, program, scenario);
  e.dims = s.graphs[0]->dims;
  e.phases = s.timeline.phases;
  e.peak_allocated = s.timeline.allocated_peak;
  e.peak_reserved = s.timeline.reserved_peak;
  e.context = memory.context;
  e.peak_device = e.peak_reserved + memory.context;
  e.fragmentation = e.peak_reserved - e.peak_allocated;
  describe_peak(e, *s.trace, s.timeline, program);
  add_resident(e, *s.trace);
  e.seconds = seconds_since(start);
  return e;
}

}  // namespace headroom
