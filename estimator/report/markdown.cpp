#include <fmt/format.h>

#include "estimator/base/text.h"
#include "estimator/report/escape.h"
#include "estimator/report/figures.h"
#include "estimator/report/report.h"

namespace headroom::report {

std::string markdown(const Estimate& e) {
  std::string out = fmt::format("### {}\n\n{}\n\n", markdown_text(e.model.name), markdown_text(scenario_line(e)));
  out += "| figure | peak | can be short by |\n|---|---:|---:|\n";
  out += fmt::format("| allocated | {} | {} |\n", human(e.peak_allocated), human(e.margin_allocated));
  out += fmt::format("| reserved | {} | {} |\n", human(e.peak_reserved), human(e.margin_reserved));
  out += fmt::format("| device | {} | {} |\n", human(e.peak_device), human(e.margin_device));
  if (e.fits)
    out += fmt::format("\n{} on {} ({}).\n", *e.fits ? "Fits" : "**Does not fit**",
                       markdown_text(e.scenario.device.name.empty() ? "a card" : e.scenario.device.name),
                       human(e.scenario.device.total_bytes));
  if (e.budget)
    out += fmt::format("\n{} the budget of {}.\n", e.within_budget() ? "Within" : "**Over**", human(*e.budget));
  if (e.out_of_memory)
    out += fmt::format("\nOut of memory in step {}, {}:\n\n> {}\n", e.oom_at.step, markdown_text(place_line(e.oom_at)),
                       markdown_text(e.oom_text));
  out += "\n| at the peak | bytes | share |\n|---|---:|---:|\n";
  for (const CategoryRow& r : category_rows(e))
    out += fmt::format("| {} | {} | {:.1f} % |\n", r.name, human(r.bytes), r.share * 100);
  const auto phases = phase_rows(e);
  if (!phases.empty()) {
    out += "\n| phase | allocated | reserved |\n|---|---:|---:|\n";
    for (const PhaseRow& p : phases)
      out += fmt::format("| {} | {} | {} |\n", name_of(p.phase), human(p.allocated), human(p.reserved));
  }
  const auto diagnostics = diagnostic_rows(e);
  if (!diagnostics.empty()) {
    out += "\nAssumed or not modelled:\n\n";
    for (const DiagnosticRow& d : diagnostics)
      out += fmt::format("- {}: {}{}\n", markdown_text(d.diagnostic.code), markdown_text(d.diagnostic.message),
                         d.diagnostic.bound.count() > 0 ? ", up to " + human(d.diagnostic.bound) : "");
  }
  return out;
}

}  // namespace headroom::report
