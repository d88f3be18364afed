#include "estimator/report/review.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/text.h"
#include "estimator/plan/advise.h"
#include "estimator/plan/command.h"
#include "estimator/program/scenario_text.h"
#include "estimator/report/advice_report.h"
#include "estimator/report/course_picture.h"
#include "estimator/report/figures.h"

namespace headroom::report {
namespace {

constexpr std::size_t shown_tensors = 10;

Grid grid(std::vector<GridColumn> columns) {
  return {.title = {}, .across = {}, .columns = std::move(columns), .rows = {}};
}

std::vector<GridCell> cells(std::vector<std::string> texts) {
  std::vector<GridCell> out;
  for (auto& t : texts) out.push_back({.text = std::move(t)});
  return out;
}

void answer(Document& d, const Estimate& e) {
  d.heading("The answer");
  std::string text = fmt::format("The process takes {} of the card (nvidia-smi), {} of it allocated at the peak.",
                                 human(e.peak_device), human(e.peak_allocated));
  if (e.fits) {
    const std::string card = e.scenario.device.name.empty()
                                 ? "a card of " + human(e.scenario.device.total_bytes)
                                 : e.scenario.device.name + " (" + human(e.scenario.device.total_bytes) + ")";
    text += *e.fits ? " It fits on " + card + ", with " + human(e.spare) + " to spare beyond the margin."
                    : " It does not fit on " + card + ": " + human(Bytes() - e.spare) + " too much, margin included.";
  }
  d.paragraph(text);
  Grid g = grid({{"figure", false, true}, {"peak"}, {"can be short by"}, {"as shown by", false}});
  g.rows.push_back(
      cells({"allocated", human(e.peak_allocated), human(e.margin_allocated), "torch.cuda.max_memory_allocated()"}));
  g.rows.push_back(
      cells({"reserved", human(e.peak_reserved), human(e.margin_reserved), "torch.cuda.max_memory_reserved()"}));
  g.rows.push_back(cells({"device", human(e.peak_device), human(e.margin_device), "nvidia-smi"}));
  d.table(std::move(g));
  d.code({estimate_command(e, e.scenario)});
}

void where_it_goes(Document& d, const Estimate& e, const Course& course) {
  d.heading("Where it goes");
  d.paragraph("The peak is in step " + std::to_string(e.at.step) + ": " + place_line(e.at) + ".");
  d.picture(course_picture(course, e));
  Grid categories = grid({{"at the peak", false, true}, {"bytes"}, {"share"}});
  for (const CategoryRow& r : category_rows(e))
    categories.rows.push_back(cells({r.name, human(r.bytes), fmt::format("{:.1f} %", r.share * 100)}));
  d.table(std::move(categories));
  Grid phases = grid({{"phase", false, true}, {"allocated, peak"}, {"reserved, peak"}});
  for (const PhaseRow& p : phase_rows(e))
    phases.rows.push_back(cells({std::string(name_of(p.phase)), human(p.allocated), human(p.reserved)}));
  d.table(std::move(phases));
  Grid largest = grid({{"largest tensors at the peak"}, {"category", false}, {"where", false}});
  for (std::size_t i = 0; i < std::min(shown_tensors, e.largest.size()); ++i) {
    const LiveTensor& t = e.largest[i];
    largest.rows.push_back(cells({human(t.bytes), spaced(name_of(t.category)),
                                  t.module.empty() ? t.name : t.module + (t.op.empty() ? "" : " " + t.op)}));
  }
  d.table(std::move(largest));
}

void grids(Document& d, const GridDocument& tables) {
  for (const Grid& g : tables.grids) d.table(g);
  for (const std::string& note : tables.notes) d.paragraph(note);
}

void what_to_change(Document& d, const Advice& a) {
  d.heading("What to change");
  d.paragraph(
      "Every row is a simulation of its own. Alone: what the change makes of the reserved peak, which decides what "
      "fits; on top: after the changes in the rows before it.");
  Grid g = grid({{"change", false, true}, {"alone"}, {"on top"}, {"allocated"}, {"reserved"}});
  g.rows.push_back(cells({"as it is", "", "", human(a.base.peak_allocated), human(a.base.peak_reserved)}));
  Bytes reached = a.base.peak_reserved;
  std::vector<std::string> costs;
  for (const AdviceStep& s : a.steps) {
    if (!s.kept && s.alone.reserved >= a.base.peak_reserved) continue;
    g.rows.push_back(
        cells({s.rung.title + (s.kept ? "" : " (not kept)"), signed_size(s.alone.reserved - a.base.peak_reserved),
               signed_size(s.together.reserved - reached), human(s.together.allocated), human(s.together.reserved)}));
    if (s.kept) reached = s.together.reserved;
    costs.push_back(s.rung.title + ": " + cost_text(s.rung.cost) +
                    ". headroom: " + flags_text(a.base.scenario, s.alone.scenario));
  }
  d.table(std::move(g));
  d.list(std::move(costs));
  std::vector<std::string> unmodelled;
  for (const Unmodelled& u : a.unmodelled) unmodelled.push_back(u.title + " " + u.what + " (" + human(u.acts_on) + ")");
  if (!unmodelled.empty()) {
    d.paragraph("Not simulated, and not modelled yet:");
    d.list(std::move(unmodelled));
  }
  if (!a.chosen) return;
  std::string verdict = chosen_sentence(a);
  d.paragraph("The model " + verdict + ".");
  if (a.chosen->rungs.empty()) return;
  for (const Rung& r : a.chosen->rungs) {
    d.list({r.title});
    d.code(r.code);
  }
  d.code({estimate_command(a.base, a.chosen->run.scenario)});
}

void assumptions(Document& d, const Estimate& e) {
  d.heading("Assumptions");
  Grid knobs = grid({{"knob", false, true}, {"value", false}});
  for (const auto& [name, value] : scenario_text(e.scenario))
    if (!value.empty() && value != "false") knobs.rows.push_back(cells({name, value}));
  d.table(std::move(knobs));
  Grid margin = grid({{"what the figure can be short by", false, true}, {"allocated"}, {"reserved"}, {"device"}});
  for (const MarginPart& p : e.margins)
    margin.rows.push_back(cells({p.code, human(p.allocated), human(p.reserved), human(p.device)}));
  if (!margin.rows.empty()) d.table(std::move(margin));
  std::vector<std::string> said;
  for (const DiagnosticRow& r : diagnostic_rows(e)) {
    std::string text = r.diagnostic.code + ": " + r.diagnostic.message;
    if (r.count > 1) text += fmt::format(" ({} times)", r.count);
    if (r.diagnostic.bound.count() > 0) text += ", up to " + human(r.diagnostic.bound);
    said.push_back(std::move(text));
  }
  if (!said.empty()) d.list(std::move(said));
  d.paragraph("headroom " HEADROOM_VERSION
              ". The model was not run: its file was, step by step, on tensors without numbers, "
              "and a model of PyTorch's caching allocator served every allocation.");
}

}  // namespace

Document review_document(const Review& r) {
  const Estimate& e = r.advice.base;
  Document d{.title = "GPU memory of " + e.model.name, .subtitle = {}, .blocks = {}};
  d.subtitle = fmt::format("{:.4g} M parameters, {}", static_cast<double>(e.model.parameters) / 1e6, scenario_line(e));
  answer(d, e);
  where_it_goes(d, e, r.course);
  if (r.sweep) {
    d.heading("Other sizes");
    grids(d, sweep_grids(*r.sweep, {&metrics()[2]}));
  }
  if (!r.fits.empty()) d.heading("Other cards");
  for (const FitAnswer& f : r.fits) grids(d, fit_grid(f));
  what_to_change(d, r.advice);
  assumptions(d, e);
  return d;
}

}  // namespace headroom::report
