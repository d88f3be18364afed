#include <algorithm>

#include "estimator/report/escape.h"
#include "estimator/report/grid.h"

namespace headroom::report {
namespace {

std::string cell_text(const GridCell& c) {
  const std::string text = latex_text(c.text);
  return c.verdict == GridCell::Verdict::does_not_fit ? text + " $\\times$" : text;
}

/// Names the columns that are no keys, over a rule.
std::string across_row(const Grid& g, std::size_t keys) {
  const std::string span = std::to_string(g.columns.size() - keys);
  const std::string blanks = keys == 0 ? "" : std::string(keys, '&');
  return blanks + "\\multicolumn{" + span + "}{c}{" + latex_text(g.across) + "} \\\\\n\\cmidrule(l){" +
         std::to_string(keys + 1) + "-" + std::to_string(g.columns.size()) + "}\n";
}

}  // namespace

std::string grid_latex(const Grid& g) {
  const auto keys =
      static_cast<std::size_t>(std::count_if(g.columns.begin(), g.columns.end(), [](const auto& c) { return c.key; }));
  std::string out = "\\begin{tabular}{";
  for (const GridColumn& c : g.columns) out += c.number ? 'r' : 'l';
  out += "}\n\\toprule\n";
  if (!g.across.empty() && g.columns.size() > keys) out += across_row(g, keys);
  const auto line = [&out](const auto& cells, const auto& text_of) {
    for (std::size_t i = 0; i < cells.size(); ++i) out += (i ? " & " : "") + text_of(cells[i]);
    out += " \\\\\n";
  };
  line(g.columns, [](const GridColumn& c) { return latex_text(c.heading); });
  out += "\\midrule\n";
  // A row that began with [ would be taken for the argument of the \\ before it.
  for (const auto& row : g.rows)
    line(row, [](const GridCell& c) { return (c.text.starts_with('[') ? "{}" : "") + cell_text(c); });
  return out + "\\bottomrule\n\\end{tabular}\n";
}

std::string grid_latex(const GridDocument& d) {
  std::string out = "% \\usepackage{booktabs}\n";
  for (const Grid& g : d.grids) {
    out += "\\begin{table}\n\\centering\n\\caption{" + latex_text(d.title);
    for (const std::string& part : {d.subtitle, g.title})
      if (!part.empty()) out += ". " + latex_text(part);
    for (const std::string& n : d.notes) out += ". " + latex_text(n);
    out += "}\n" + grid_latex(g) + "\\end{table}\n";
  }
  return out;
}

}  // namespace headroom::report
