#include <algorithm>
#include <string_view>

#include "estimator/report/escape.h"
#include "estimator/report/grid.h"
#include "estimator/report/html_page.h"

namespace headroom::report {
namespace {

constexpr int heat_steps = 8;

std::string classes(const GridColumn& column, const GridCell& cell) {
  std::string out;
  const auto add = [&out](const std::string& c) { out += (out.empty() ? "" : " ") + c; };
  if (column.number) add("n");
  if (cell.verdict == GridCell::Verdict::does_not_fit) add("no");
  if (cell.verdict == GridCell::Verdict::failed) add("failed");
  if (cell.heat >= 0) add("h" + std::to_string(static_cast<int>(std::clamp(cell.heat, 0.0, 0.999) * heat_steps)));
  return out.empty() ? "" : " class=\"" + out + "\"";
}

}  // namespace

std::string grid_html(const Grid& g) {
  const auto keys =
      static_cast<std::size_t>(std::count_if(g.columns.begin(), g.columns.end(), [](const auto& c) { return c.key; }));
  std::string out = "<figure>\n";
  if (!g.title.empty()) out += "<figcaption>" + html_text(g.title) + "</figcaption>\n";
  out += "<table>\n<thead>\n";
  if (!g.across.empty() && g.columns.size() > keys) {
    out += "<tr>";
    if (keys > 0) out += "<td colspan=\"" + std::to_string(keys) + "\"></td>";
    out += "<th class=\"across\" scope=\"colgroup\" colspan=\"" + std::to_string(g.columns.size() - keys) + "\">" +
           html_text(g.across) + "</th></tr>\n";
  }
  out += "<tr>";
  for (const GridColumn& c : g.columns)
    out += "<th scope=\"col\"" + classes(c, {}) + ">" + html_text(c.heading) + "</th>";
  out += "</tr>\n</thead>\n<tbody>\n";
  for (const auto& row : g.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool key = g.columns[i].key;
      out += (key ? "<th scope=\"row\"" : "<td") + classes(g.columns[i], row[i]) + ">" + html_text(row[i].text) +
             (key ? "</th>" : "</td>");
    }
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n</figure>\n";
}

std::string grid_html(const GridDocument& d) {
  std::string body;
  for (const Grid& g : d.grids) body += grid_html(g);
  for (const std::string& n : d.notes) body += "<p>" + html_text(n) + "</p>\n";
  return html_page(d.title, d.subtitle, body);
}

}  // namespace headroom::report
