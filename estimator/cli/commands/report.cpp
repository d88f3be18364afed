#include <algorithm>
#include <filesystem>
#include <set>

#include "estimator/base/error.h"
#include "estimator/cli/axes.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/plan/advise.h"
#include "estimator/plan/resize.h"
#include "estimator/report/review.h"

namespace headroom::cli {
namespace {

constexpr std::size_t picture_columns = 360;

/// What is swept when no --over says: a quarter to four times the batch, by precision.
std::vector<std::string> usual_axes(const Scenario& s, const ShapedGraph& graph) {
  std::vector<std::string> out;
  if (const auto batch = size_of(graph, DimMeaning::batch)) {
    const std::set<std::int64_t> sizes{std::max<std::int64_t>(1, *batch / 4), std::max<std::int64_t>(1, *batch / 2),
                                       *batch, *batch * 2, *batch * 4};
    std::string axis;
    for (const auto n : sizes) axis += (axis.empty() ? "batch=" : ",") + std::to_string(n);
    out.push_back(axis);
  }
  // bfloat16 in hardware from compute capability 8.0 on.
  const bool bf16 = s.device.compute_major >= 8;
  out.emplace_back(!s.training() ? "precision=fp32,fp16,bf16"
                   : bf16        ? "precision=fp32,amp-bf16,bf16"
                                 : "precision=fp32,amp-fp16");
  return out;
}

std::optional<Sweep> sweep_for(const Options& o, Estimator& estimator, const ShapedGraph& graph, Diagnostics& said) {
  Options question = o;
  if (question.over.empty()) question.over = usual_axes(scenario_of(o), graph);
  const std::vector<Axis> axes = axes_of(question, estimator.model());
  Sweep sweep = sweep_of(question, axes);
  sweep.model = estimator.model().path.filename().string();
  headroom::run_sweep(estimator, sweep, {.threads = o.threads});
  if (std::any_of(sweep.cells.begin(), sweep.cells.end(), [](const SweepCell& c) { return !c.error; })) return sweep;
  said.push_back({.code = "no-sweep",
                  .severity = Severity::info,
                  .node = {},
                  .message = std::string("no table of other sizes: ") + sweep.cells[0].error->what()});
  return std::nullopt;
}

/// Which of the usual cards hold the question as it is; and the largest batch on the card that is named.
std::vector<report::FitAnswer> fits_for(const Options& o, Estimator& estimator, const ShapedGraph& graph,
                                        Diagnostics& said) {
  Options without_card = o;
  without_card.gpu.clear();
  without_card.gpus.clear();
  without_card.memory.clear();
  report::FitAnswer as_it_is;
  as_it_is.model = estimator.model().path.filename().string();
  as_it_is.question = {
      .scenario = scenario_of(without_card), .devices = devices_of(without_card), .max = {}, .global_batch = {}};
  std::vector<report::FitAnswer> out{as_it_is};
  const Device card = scenario_of(o).device;
  if (card.total_bytes.count() > 0 && size_of(graph, DimMeaning::batch) && o.scenario.shapes.empty() &&
      o.scenario.dims.empty()) {
    out.push_back(as_it_is);
    out.back().question.devices = {card};
    out.back().question.scenario.batch.reset();
    out.back().question.max = "batch";
  }
  try {
    for (report::FitAnswer& answer : out) answer.cards = fit(estimator, answer.question, {.threads = o.threads});
  } catch (const Error& e) {
    said.push_back({.code = "no-cards",
                    .severity = Severity::info,
                    .node = {},
                    .message = std::string("no table of cards: ") + e.what()});
    out.clear();
  }
  return out;
}

std::string format_of(const Options& o) {
  if (o.format != "table") return o.format;
  const std::string ending = std::filesystem::path(o.output).extension().string();
  return ending == ".md" ? "md" : ending == ".tex" ? "latex" : "html";
}

}  // namespace

int run_report(const Options& o) {
  Estimator estimator{std::filesystem::path(model_file(o))};
  const Scenario scenario = scenario_of(o);
  Advice advice = advise(estimator, scenario);
  note_not_modelled_yet(scenario, advice.base.diagnostics);
  Stages stages;
  estimator.estimate(scenario, &stages);
  report::Review review{.advice = advice, .course = course_of(stages, picture_columns), .sweep = {}, .fits = {}};
  review.sweep = sweep_for(o, estimator, *stages.graphs[0], advice.base.diagnostics);
  review.fits = fits_for(o, estimator, *stages.graphs[0], advice.base.diagnostics);

  const report::Document document = report::review_document(review);
  const std::string format = format_of(o);
  if (format == "html") {
    write_result(report::document_html(document), o.output);
  } else if (format == "latex") {
    write_result(report::document_latex(document), o.output);
  } else {
    // Markdown holds no pictures: they stand beside it.
    std::string picture;
    if (!o.output.empty()) {
      const std::filesystem::path beside = std::filesystem::path(o.output).replace_extension(".svg");
      for (const report::Block& b : document.blocks)
        if (b.kind == report::Block::Kind::picture) write_result(report::svg(b.picture), beside.string());
      picture = beside.filename().string();
    }
    write_result(report::document_markdown(document, picture), o.output);
  }
  return static_cast<int>(advice.base.fits.value_or(true) ? Exit::answered : Exit::answered_no);
}

}  // namespace headroom::cli
