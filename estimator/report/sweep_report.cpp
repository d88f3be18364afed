#include "estimator/report/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "estimator/base/text.h"
#include "estimator/report/escape.h"
#include "estimator/report/figures.h"
#include "estimator/report/json_parts.h"

namespace headroom::report {
namespace {

using Verdict = GridCell::Verdict;

/// One unit for a whole table, so that its numbers can be compared at a glance.
struct Unit {
  std::string name;
  std::int64_t bytes;
  int decimals;
};

Unit unit_of(Bytes largest) { return largest.count() >= GiB ? Unit{"GiB", GiB, 2} : Unit{"MiB", MiB, 1}; }

class SweepGrids {
 public:
  SweepGrids(const Sweep& sweep, const std::vector<const Metric*>& metrics) : s_(sweep), metrics_(metrics) {}

  GridDocument document() {
    std::vector<std::string> varied;
    for (const SweepAxis& a : s_.axes) varied.push_back(a.name);
    GridDocument d{.title = s_.model, .subtitle = scenario_summary(s_.base, varied), .grids = {}, .notes = {}};
    if (s_.axes.size() == 1)
      d.grids.push_back(rows_of_metrics());
    else
      for (const Metric* m : metrics_) d.grids.push_back(pivoted(*m));
    notes(d);
    return d;
  }

 private:
  Bytes largest(const Metric& m) const {
    Bytes out;
    for (const SweepCell& c : s_.cells)
      if (!c.error) out = std::max(out, m.of(c.estimate));
    return out;
  }

  GridCell cell(const SweepCell& c, const Metric& m, const Unit& unit, Bytes most) const {
    if (c.error) return {.text = "–", .verdict = Verdict::failed};
    const Bytes bytes = m.of(c.estimate);
    const Bytes total = c.estimate.scenario.device.total_bytes;
    const Bytes whole = total.count() > 0 ? total : most;
    const double share = static_cast<double>(total.count() > 0 ? c.estimate.peak_device.count() : bytes.count()) /
                         static_cast<double>(std::max<std::int64_t>(1, whole.count()));
    return {.text = fmt::format("{:.{}f}", static_cast<double>(bytes.count()) / static_cast<double>(unit.bytes),
                                unit.decimals),
            .verdict = !c.estimate.fits   ? Verdict::none
                       : *c.estimate.fits ? Verdict::fits
                                          : Verdict::does_not_fit,
            .heat = share};
  }

  Grid rows_of_metrics() const {
    const SweepAxis& axis = s_.axes[0];
    Grid g{.title = {}, .across = {}, .columns = {{axis.name, axis.numbers, true}}, .rows = {}};
    for (const std::string& v : axis.values) g.rows.push_back({{.text = v}});
    for (const Metric* m : metrics_) {
      const Bytes most = largest(*m);
      const Unit unit = unit_of(most);
      g.columns.push_back({std::string(m->name) + ", " + unit.name, true, false});
      for (std::size_t i = 0; i < s_.cells.size(); ++i) g.rows[i].push_back(cell(s_.cells[i], *m, unit, most));
    }
    return g;
  }

  Grid pivoted(const Metric& m) const {
    const Bytes most = largest(m);
    const Unit unit = unit_of(most);
    const SweepAxis& last = s_.axes.back();
    Grid g{.title = std::string(m.what) + ", " + unit.name, .across = last.name, .columns = {}, .rows = {}};
    for (std::size_t a = 0; a + 1 < s_.axes.size(); ++a)
      g.columns.push_back({s_.axes[a].name, s_.axes[a].numbers, true});
    for (const std::string& v : last.values) g.columns.push_back({v, true, false});
    for (std::size_t i = 0; i < s_.cells.size(); ++i) {
      if (i % last.values.size() == 0) {
        g.rows.emplace_back();
        const auto place = s_.place(i);
        for (std::size_t a = 0; a + 1 < s_.axes.size(); ++a)
          g.rows.back().push_back({.text = s_.axes[a].values[place[a]]});
      }
      g.rows.back().push_back(cell(s_.cells[i], m, unit, most));
    }
    return g;
  }

  void notes(GridDocument& d) const {
    const auto misfits = std::count_if(s_.cells.begin(), s_.cells.end(),
                                       [](const SweepCell& c) { return !c.error && !c.estimate.fits.value_or(true); });
    if (misfits > 0)
      d.notes.push_back(fmt::format("✗ does not fit, with what the figure can be short by held back: {} of {}", misfits,
                                    s_.cells.size()));
    std::vector<std::pair<std::string, int>> failures;
    for (const SweepCell& c : s_.cells) {
      if (!c.error) continue;
      const std::string what = c.error->what();
      const auto known = std::find_if(failures.begin(), failures.end(), [&](const auto& f) { return f.first == what; });
      if (known == failures.end())
        failures.emplace_back(what, 1);
      else
        ++known->second;
    }
    constexpr std::size_t shown = 5;
    for (std::size_t i = 0; i < std::min(shown, failures.size()); ++i)
      d.notes.push_back(
          fmt::format("– no answer, {} of {}: {}", failures[i].second, s_.cells.size(), failures[i].first));
    if (failures.size() > shown)
      d.notes.push_back(fmt::format("and {} more reasons: --format json has all", failures.size() - shown));
    for (const Diagnostic& n : s_.diagnostics) d.notes.push_back(n.message);
  }

  const Sweep& s_;
  const std::vector<const Metric*>& metrics_;
};

nlohmann::ordered_json value_json(const SweepAxis& axis, std::size_t value) {
  const std::string& text = axis.values[value];
  if (axis.numbers)
    if (const auto n = parse_int(text)) return *n;
  return text;
}

}  // namespace

GridDocument sweep_grids(const Sweep& sweep, const std::vector<const Metric*>& metrics) {
  return SweepGrids(sweep, metrics).document();
}

std::string sweep_json(const Sweep& s) {
  using nlohmann::ordered_json;
  ordered_json j = json_head();
  j["model"] = {{"name", s.model}};
  j["scenario"] = scenario_json(s.base);
  j["axes"] = ordered_json::array();
  for (const SweepAxis& a : s.axes) {
    ordered_json values = ordered_json::array();
    for (std::size_t v = 0; v < a.values.size(); ++v) values.push_back(value_json(a, v));
    j["axes"].push_back({{"name", a.name}, {"values", values}});
  }
  j["cells"] = ordered_json::array();
  for (std::size_t i = 0; i < s.cells.size(); ++i) {
    const SweepCell& c = s.cells[i];
    const auto place = s.place(i);
    ordered_json row;
    for (std::size_t a = 0; a < s.axes.size(); ++a) row["axes"][s.axes[a].name] = value_json(s.axes[a], place[a]);
    if (c.error) {
      row["error"] = error_json(*c.error);
    } else {
      row["peak"] = peak_json(c.estimate);
      row["margin"] = margin_json(c.estimate);
      for (const Metric& m : metrics()) row["metrics"][std::string(m.key)] = m.of(c.estimate).count();
      if (c.estimate.fits) {
        row["fits"] = *c.estimate.fits;
        row["spare_bytes"] = c.estimate.spare.count();
      }
    }
    j["cells"].push_back(std::move(row));
  }
  j["diagnostics"] = diagnostics_json(s.diagnostics);
  return json_text(j);
}

std::string sweep_csv(const Sweep& s) {
  std::string out = "model";
  for (const SweepAxis& a : s.axes) out += "," + csv_field(a.name);
  for (const Metric& m : metrics()) out += "," + std::string(m.key);
  out += ",fits,spare_bytes,error\n";
  for (std::size_t i = 0; i < s.cells.size(); ++i) {
    const SweepCell& c = s.cells[i];
    const auto place = s.place(i);
    out += csv_field(s.model);
    for (std::size_t a = 0; a < s.axes.size(); ++a) out += "," + csv_field(s.axes[a].values[place[a]]);
    for (const Metric& m : metrics()) out += "," + (c.error ? "" : std::to_string(m.of(c.estimate).count()));
    const bool card = !c.error && c.estimate.fits;
    out += std::string(",") + (card ? *c.estimate.fits ? "yes" : "no" : "") + "," +
           (card ? std::to_string(c.estimate.spare.count()) : "") + "," + (c.error ? csv_field(c.error->what()) : "") +
           "\n";
  }
  return out;
}

}  // namespace headroom::report
