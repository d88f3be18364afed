#include "estimator/report/escape.h"
#include "estimator/report/grid.h"

namespace headroom::report {
namespace {

std::string cell_text(const GridCell& c) {
  const std::string text = markdown_text(c.text);
  return c.verdict == GridCell::Verdict::does_not_fit ? text + " ✗" : text;
}

}  // namespace

std::string grid_markdown(const Grid& g) {
  std::string caption = markdown_text(g.title);
  if (!g.across.empty()) caption += (caption.empty() ? "" : ", ") + ("by " + markdown_text(g.across));
  std::string out = (caption.empty() ? "" : "**" + caption + "**\n\n") + "|";
  for (const GridColumn& c : g.columns) out += " " + markdown_text(c.heading) + " |";
  out += "\n|";
  for (const GridColumn& c : g.columns) out += c.number ? "---:|" : "---|";
  out += "\n";
  for (const auto& row : g.rows) {
    out += "|";
    for (const GridCell& c : row) out += " " + cell_text(c) + " |";
    out += "\n";
  }
  return out;
}

std::string grid_markdown(const GridDocument& d) {
  std::string out = "### " + markdown_text(d.title) + "\n";
  if (!d.subtitle.empty()) out += "\n" + markdown_text(d.subtitle) + "\n";
  for (const Grid& g : d.grids) out += "\n" + grid_markdown(g);
  for (const std::string& n : d.notes) out += "\n" + markdown_text(n) + "\n";
  return out;
}

}  // namespace headroom::report
