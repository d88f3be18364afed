#include "estimator/report/difference_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "estimator/base/text.h"
#include "estimator/report/escape.h"
#include "estimator/report/figures.h"
#include "estimator/report/json_parts.h"

namespace headroom::report {
namespace {

std::string percent(const Change& c) {
  if (c.before.count() == 0) return c.after.count() == 0 ? "" : "new";
  return fmt::format("{:+.1f} %",
                     100.0 * static_cast<double>(c.bytes().count()) / static_cast<double>(c.before.count()));
}

std::array<Change, 3> figures(const Difference& d) {
  return {{{"allocated", d.before.allocated, d.after.allocated},
           {"reserved", d.before.reserved, d.after.reserved},
           {"device", d.before.device, d.after.device}}};
}

std::string title(const Difference& d) {
  return d.before.model == d.after.model ? d.before.model : d.before.model + " → " + d.after.model;
}

std::string shown_setting(const std::string& value) { return value.empty() ? "unset" : value; }

/// The line's own part of its path: what its parent's line says already is left out.
std::string short_name(const ModuleChange& m, const std::vector<std::string>& parents) {
  std::string name = m.change.name;
  if (m.depth > 0) name.erase(0, parents[static_cast<std::size_t>(m.depth - 1)].size() + 1);
  if (name.empty()) name = "(root)";
  return name;
}

/// Calls `f(module, indented name)` for every line of the tree.
template <class F>
void for_each_module(const Difference& d, F&& f) {
  std::vector<std::string> parents;
  for (const ModuleChange& m : d.modules) {
    parents.resize(static_cast<std::size_t>(m.depth) + 1);
    parents.back() = m.change.name;
    std::string name = short_name(m, parents);
    if (m.modules > 1) name += fmt::format(" ({})", m.modules);
    f(m, name);
  }
}

std::string verdict_line(const DifferenceVerdict& v) {
  return v.exceeded ? "grew by more than " + v.tolerance : "grew by no more than " + v.tolerance;
}

}  // namespace

std::string difference_table(const Difference& d, const DifferenceVerdict& verdict, const TableStyle& style) {
  const Text text(style);
  const auto width = static_cast<std::size_t>(std::clamp(style.width, 60, 120));
  const std::size_t names = std::min<std::size_t>(width - 48, 40);
  std::string out = text.bold(clipped(title(d), width)) + "\n";
  for (const SettingChange& s : d.settings)
    out += text.dim(
        wrapped(printable(fmt::format("{}: {} → {}", s.name, shown_setting(s.before), shown_setting(s.after)), 300),
                width, 4, "  "));
  const auto heading = [&](const char* name) {
    out += "\n" +
           text.bold(fmt::format("{:<{}} {:>10}  {:>10}  {:>10}", name, names + 2, "before", "after", "change")) + "\n";
  };
  const auto row = [&](const std::string& name, const Change& c, const std::string& note) {
    const std::string change = fmt::format("{:>10}", signed_size(c.bytes()));
    out += "  " + fit(name, names) + fmt::format(" {:>10}  {:>10}  ", human(c.before), human(c.after)) +
           (c.bytes().count() > 0   ? text.bad(change)
            : c.bytes().count() < 0 ? text.good(change)
                                    : text.dim(change)) +
           (note.empty() ? "" : text.dim("  " + note)) + "\n";
  };
  heading("peak");
  for (const Change& c : figures(d)) row(c.name, c, percent(c));
  if (d.before.place != d.after.place) {
    out += text.dim(
        wrapped("the peak was at " + printable(d.before.place, 200) + ", is at " + printable(d.after.place, 200), width,
                4, "  "));
  }
  heading("category at the peak");
  for (const Change& c : d.categories) row(spaced(c.name), c, percent(c));
  if (!d.modules.empty()) heading("module");
  for_each_module(d, [&](const ModuleChange& m, const std::string& name) {
    row(std::string(static_cast<std::size_t>(m.depth) * 2, ' ') + name, m.change,
        width >= 80 ? spaced(m.category) : std::string());
  });
  if (!verdict.tolerance.empty())
    out += "\n  " + (verdict.exceeded ? text.bad(verdict_line(verdict)) : text.good(verdict_line(verdict))) + "\n";
  return out;
}

std::string difference_json(const Difference& d, const DifferenceVerdict& verdict) {
  nlohmann::ordered_json j = json_head();
  const auto side = [](const Footprint& f) -> nlohmann::ordered_json {
    return {{"model", f.model},
            {"parameters", f.parameters},
            {"peak",
             {{"allocated_bytes", f.allocated.count()},
              {"reserved_bytes", f.reserved.count()},
              {"device_bytes", f.device.count()},
              {"place", f.place}}}};
  };
  const auto change = [](const char* key, const Change& c) -> nlohmann::ordered_json {
    return {{key, c.name},
            {"before_bytes", c.before.count()},
            {"after_bytes", c.after.count()},
            {"change_bytes", c.bytes().count()}};
  };
  j["before"] = side(d.before);
  j["after"] = side(d.after);
  for (const Change& c : figures(d)) j["change"][c.name + "_bytes"] = c.bytes().count();
  j["settings"] = nlohmann::ordered_json::array();
  for (const SettingChange& s : d.settings)
    j["settings"].push_back({{"name", s.name}, {"before", s.before}, {"after", s.after}});
  j["categories"] = nlohmann::ordered_json::array();
  for (const Change& c : d.categories) j["categories"].push_back(change("category", c));
  j["modules"] = nlohmann::ordered_json::array();
  for (const ModuleChange& m : d.modules) {
    auto row = change("module", m.change);
    row["depth"] = m.depth;
    row["modules"] = m.modules;
    row["category"] = m.category;
    j["modules"].push_back(std::move(row));
  }
  if (!verdict.tolerance.empty()) {
    j["tolerance"] = verdict.tolerance;
    j["exceeded"] = verdict.exceeded;
  }
  return json_text(j);
}

std::string difference_csv(const Difference& d) {
  std::string out = "kind,name,before_bytes,after_bytes,change_bytes\n";
  const auto row = [&](const char* kind, const Change& c) {
    out +=
        fmt::format("{},{},{},{},{}\n", kind, csv_field(c.name), c.before.count(), c.after.count(), c.bytes().count());
  };
  for (const Change& c : figures(d)) row("peak", c);
  for (const Change& c : d.categories) row("category", c);
  for (const ModuleChange& m : d.modules) row("module", m.change);
  return out;
}

std::string difference_markdown(const Difference& d, const DifferenceVerdict& verdict) {
  const Change allocated = figures(d)[0];
  std::string out = fmt::format("### GPU memory of {}: {} ({})\n\n", markdown_text(title(d)),
                                signed_size(allocated.bytes()), percent(allocated));
  if (!verdict.tolerance.empty())
    out +=
        (verdict.exceeded ? "**" : "") + markdown_text(verdict_line(verdict)) + (verdict.exceeded ? "**" : "") + "\n\n";
  for (const SettingChange& s : d.settings)
    out += fmt::format("- {}: {} → {}\n", markdown_text(s.name), markdown_text(shown_setting(s.before)),
                       markdown_text(shown_setting(s.after)));
  if (!d.settings.empty()) out += "\n";
  const auto heading = [&](const char* name) {
    out += fmt::format("| {} | before | after | change | |\n|---|---:|---:|---:|---:|\n", name);
  };
  const auto row = [&](const std::string& name, const Change& c) {
    out += fmt::format("| {} | {} | {} | {} | {} |\n", name, human(c.before), human(c.after), signed_size(c.bytes()),
                       percent(c));
  };
  heading("peak");
  for (const Change& c : figures(d)) row(c.name, c);
  if (d.before.place != d.after.place)
    out +=
        fmt::format("\nThe peak was at {}, is at {}.\n", markdown_text(d.before.place), markdown_text(d.after.place));
  out += "\n";
  heading("category at the peak");
  for (const Change& c : d.categories) row(markdown_text(spaced(c.name)), c);
  if (d.modules.empty()) return out;
  out += "\n<details><summary>By module</summary>\n\n";
  heading("module");
  for_each_module(d, [&](const ModuleChange& m, const std::string& name) {
    std::string indent;
    for (int i = 0; i < m.depth; ++i) indent += "&emsp;";
    row(indent + markdown_text(name), m.change);
  });
  return out + "\n</details>\n";
}

}  // namespace headroom::report
