#include "estimator/report/check_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "estimator/base/text.h"
#include "estimator/report/escape.h"
#include "estimator/report/json_parts.h"

namespace headroom::report {
namespace {

const char* verdict_of(const CheckedScenario& s) {
  return s.error ? "error" : !s.estimate->within_budget() ? "over" : s.passed() ? "ok" : "does not fit";
}

/// "1.40 GiB left of 20.0 GiB, 12.3 GiB to spare on rtx4090".
std::string reason_of(const CheckedScenario& s) {
  if (s.error) return s.error->what();
  const Estimate& e = *s.estimate;
  std::string out;
  if (e.budget) {
    const Bytes left = *e.budget - e.peak_device;
    out = left.count() >= 0 ? human(left) + " left of " + human(*e.budget)
                            : human(Bytes() - left) + " over " + human(*e.budget);
  }
  if (e.fits) {
    const std::string card =
        e.scenario.device.name.empty() ? "a card of " + human(e.scenario.device.total_bytes) : e.scenario.device.name;
    out += (out.empty() ? "" : ", ") +
           (*e.fits ? human(e.spare) + " to spare on " : human(Bytes() - e.spare) + " too much for ") + card;
  }
  return out;
}

bool all_passed(const std::vector<CheckedScenario>& scenarios) {
  return std::all_of(scenarios.begin(), scenarios.end(), [](const auto& s) { return s.passed(); });
}

}  // namespace

std::string check_table(const std::vector<CheckedScenario>& scenarios, const TableStyle& style) {
  const Text text(style);
  std::size_t names = 8, verdicts = 2;
  for (const auto& s : scenarios) {
    names = std::max(names, std::min<std::size_t>(columns(printable(s.name)), 28));
    verdicts = std::max(verdicts, std::string_view(verdict_of(s)).size());
  }
  std::string out;
  for (const auto& s : scenarios) {
    const std::string verdict = fmt::format("{:<{}}", verdict_of(s), verdicts);
    const std::string device = s.estimate ? human(s.estimate->peak_device) : "";
    out += "  " + (s.passed() ? text.good(verdict) : text.bad(verdict)) + "  " + fit(s.name, names) +
           fmt::format("  {:>10}  {}\n", device, printable(reason_of(s), 400));
  }
  return out;
}

std::string check_json(const std::vector<CheckedScenario>& scenarios) {
  nlohmann::ordered_json j = json_head();
  j["passed"] = all_passed(scenarios);
  j["scenarios"] = nlohmann::ordered_json::array();
  for (const auto& s : scenarios) {
    nlohmann::ordered_json row{{"name", s.name}, {"model", s.model}, {"passed", s.passed()}};
    if (s.estimate) {
      const Estimate& e = *s.estimate;
      row["peak"] = {{"allocated_bytes", e.peak_allocated.count()},
                     {"reserved_bytes", e.peak_reserved.count()},
                     {"device_bytes", e.peak_device.count()}};
      row["margin"] = {{"allocated_bytes", e.margin_allocated.count()},
                       {"reserved_bytes", e.margin_reserved.count()},
                       {"device_bytes", e.margin_device.count()}};
      if (e.budget) {
        row["budget_bytes"] = e.budget->count();
        row["within_budget"] = e.within_budget();
      }
      if (e.fits) {
        row["fits"] = *e.fits;
        row["spare_bytes"] = e.spare.count();
      }
    }
    if (s.error) row["error"] = {{"what", s.error->what()}, {"where", s.error->where()}, {"hint", s.error->hint()}};
    j["scenarios"].push_back(std::move(row));
  }
  return json_text(j);
}

std::string check_csv(const std::vector<CheckedScenario>& scenarios) {
  std::string out = "scenario,model,verdict,allocated_bytes,reserved_bytes,device_bytes,budget_bytes,spare_bytes\n";
  for (const auto& s : scenarios) {
    out += fmt::format("{},{},{}", csv_field(s.name), csv_field(s.model), verdict_of(s));
    const auto cell = [&](bool known, Bytes b) { out += known ? fmt::format(",{}", b.count()) : std::string(","); };
    const Estimate e = s.estimate.value_or(Estimate{});
    cell(s.estimate.has_value(), e.peak_allocated);
    cell(s.estimate.has_value(), e.peak_reserved);
    cell(s.estimate.has_value(), e.peak_device);
    cell(e.budget.has_value(), e.budget.value_or(Bytes()));
    cell(e.fits.has_value(), e.spare);
    out += "\n";
  }
  return out;
}

std::string check_markdown(const std::vector<CheckedScenario>& scenarios) {
  std::string out = "| scenario | | device | |\n|---|---|---:|---|\n";
  for (const auto& s : scenarios)
    out += fmt::format("| {} | {} | {} | {} |\n", markdown_text(s.name),
                       s.passed() ? "ok" : fmt::format("**{}**", verdict_of(s)),
                       s.estimate ? human(s.estimate->peak_device) : "", markdown_text(reason_of(s)));
  return out;
}

}  // namespace headroom::report
