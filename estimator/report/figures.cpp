#include "estimator/report/figures.h"

#include <algorithm>
#include <map>

#include "estimator/base/text.h"
#include "estimator/plan/command.h"
#include "estimator/program/scenario_text.h"
#include "estimator/report/report.h"

namespace headroom::report {

std::vector<CategoryRow> category_rows(const Estimate& e) {
  std::vector<CategoryRow> rows;
  const double total = static_cast<double>(std::max<std::int64_t>(e.peak_allocated.count(), 1));
  for (int c = 0; c < category_count; ++c) {
    const Bytes bytes = e.categories[static_cast<std::size_t>(c)];
    if (bytes.count() == 0) continue;
    std::string key(name_of(static_cast<Category>(c))), name = key;
    std::replace(name.begin(), name.end(), '_', ' ');
    if (static_cast<Category>(c) == Category::activations) name += " (saved for backward)";
    rows.push_back({std::move(name), std::move(key), bytes, static_cast<double>(bytes.count()) / total});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  rows.push_back({"allocator rounding", "rounding", e.rounding, static_cast<double>(e.rounding.count()) / total});
  return rows;
}

std::vector<PhaseRow> phase_rows(const Estimate& e) {
  std::vector<PhaseRow> rows;
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) {
    PhaseRow row{phase, {}, {}};
    for (const PhaseFigures& p : e.phases)
      if (p.phase == phase) {
        row.allocated = std::max(row.allocated, p.allocated_peak);
        row.reserved = std::max(row.reserved, p.reserved_peak);
      }
    if (row.allocated.count() > 0) rows.push_back(row);
  }
  return rows;
}

std::vector<StepRow> step_rows(const Estimate& e) {
  std::vector<StepRow> rows;
  for (const PhaseFigures& p : e.phases) {
    if (p.phase == Phase::setup) continue;
    if (rows.empty() || rows.back().step != p.step) rows.push_back({.step = p.step});
    StepRow& row = rows.back();
    row.allocated_peak = std::max(row.allocated_peak, p.allocated_peak);
    row.reserved_peak = std::max(row.reserved_peak, p.reserved_peak);
    row.allocated_end = p.allocated_end;
    row.reserved_end = p.reserved_end;
  }
  return rows;
}

std::vector<DiagnosticRow> diagnostic_rows(const Estimate& e) {
  std::vector<DiagnosticRow> rows;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const Diagnostic& d : e.diagnostics) {
    const auto [it, fresh] = places.try_emplace({d.code, d.message}, rows.size());
    if (fresh) {
      rows.push_back({d, 1});
    } else {
      ++rows[it->second].count;
      rows[it->second].diagnostic.bound += d.bound;
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    if (a.diagnostic.severity != b.diagnostic.severity) return a.diagnostic.severity > b.diagnostic.severity;
    return a.diagnostic.bound > b.diagnostic.bound;
  });
  return rows;
}

std::string spaced(std::string_view key) {
  std::string out(key);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

std::string signed_size(Bytes b) { return (b.count() > 0 ? "+" : "") + human(b); }

std::string estimate_command(const Estimate& e, const Scenario& s) {
  return "headroom estimate " + command_text({e.model.path}) + " " + command_text(flags_of(s));
}

std::string place_line(const RunPlace& p) {
  const std::string& what = p.op.empty() ? p.node : p.op;
  return std::string(name_of(p.phase)) + (what.empty() ? "" : ", " + what) +
         (p.module.empty() ? "" : " in " + p.module);
}

std::string scenario_line(const Estimate& e) {
  std::string out;
  const auto add = [&](const std::string& s) { out += (out.empty() ? "" : ", ") + s; };
  for (const BoundDim& d : e.dims)
    if (d.meaning == DimMeaning::batch)
      add("batch " + std::to_string(d.value));
    else if (d.meaning == DimMeaning::sequence)
      add("sequence " + std::to_string(d.value));
    else
      add(d.name + " " + std::to_string(d.value));
  std::map<std::string, std::string> text;
  for (const auto& [name, value] : scenario_text(e.scenario)) text[name] = value;
  add(text["precision"]);
  if (!e.scenario.training()) {
    add("inference");
    return out;
  }
  add(text["optimizer"] + " " + text["optimizer-impl"]);
  add(text["loss"] == "none" ? "its own loss" : text["loss"]);
  if (e.scenario.accumulate > 1) add("accumulation " + text["accumulate"]);
  if (e.scenario.checkpoint != CheckpointKind::none) add("checkpointing " + text["checkpoint"]);
  add("training step");
  return out;
}

std::string scenario_summary(const Scenario& s, std::span<const std::string> varied) {
  std::map<std::string, std::string> usual;
  for (auto& [name, value] : scenario_text(Scenario{})) usual[name] = std::move(value);
  std::string out;
  for (const auto& [name, value] : scenario_text(s)) {
    // Of --dim the dimension's name counts.
    const std::string about = name == "dim" ? value.substr(0, value.find('=')) : name;
    const bool always = name == "precision" || (name == "optimizer" && s.training());
    if (std::find(varied.begin(), varied.end(), about) != varied.end() || name == "task" ||
        (!always && usual.contains(name) && usual[name] == value))
      continue;
    out += (name == "dim" ? value : name + " " + (name == "memory" ? human(s.device.total_bytes) : value)) + ", ";
  }
  return out + (s.training() ? "training step" : "inference");
}

}  // namespace headroom::report
