#include <algorithm>
#include <string_view>

#include "estimator/report/escape.h"
#include "estimator/report/grid.h"

namespace headroom::report {
namespace {

constexpr int heat_steps = 8;

/// A colour-blind-safe ramp from pale to deep orange; text stays readable on each step, in the dark as in the light.
constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1f2328; --dim: #59636e; --line: #d1d9e0; --bad: #b42318; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --dim: #9198a1; --line: #3d444d; --bad: #ff7b72; --page: #0d1117; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto; padding: 0 1.5rem;
  max-width: 75rem; }
h1 { font-size: 1.35rem; margin: 0; overflow-wrap: anywhere; } p { color: var(--dim); margin: .3rem 0; }
figure { margin: 1.6rem 0; overflow-x: auto; } figcaption { font-weight: 600; margin-bottom: .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .8rem; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { color: var(--dim); font-weight: 500; } tbody th { font-weight: 500; }
thead tr:last-child th { border-bottom: 2px solid var(--dim); }
.n { text-align: right; } .across { text-align: center; }
.no::after { content: " ✗"; color: var(--bad); font-weight: 700; } .failed { color: var(--dim); white-space: normal; }
.h0, .h1, .h2, .h3, .h4, .h5, .h6, .h7 { color: #1f2328; }
.h0 { background: #fef6ec; } .h1 { background: #fdead2; } .h2 { background: #fddbb1; } .h3 { background: #fdc98d; }
.h4 { background: #fdb66b; } .h5 { background: #fba24e; } .h6 { background: #f78d35; } .h7 { background: #ee7a22; }
.h0.no::after, .h1.no::after, .h2.no::after, .h3.no::after, .h4.no::after, .h5.no::after, .h6.no::after, .h7.no::after {
  color: #7a0b00; }
)";

std::string classes(const GridColumn& column, const GridCell& cell) {
  std::string out;
  const auto add = [&out](const std::string& c) { out += (out.empty() ? "" : " ") + c; };
  if (column.number) add("n");
  if (cell.verdict == GridCell::Verdict::does_not_fit) add("no");
  if (cell.verdict == GridCell::Verdict::failed) add("failed");
  if (cell.heat >= 0) add("h" + std::to_string(static_cast<int>(std::clamp(cell.heat, 0.0, 0.999) * heat_steps)));
  return out.empty() ? "" : " class=\"" + out + "\"";
}

std::string table_of(const Grid& g) {
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

}  // namespace

std::string grid_html(const GridDocument& d) {
  const std::string title = html_text(d.title);
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width\">\n<link rel=\"icon\" href=\"data:,\">\n";
  out += "<title>" + title + "</title>\n<style>" + std::string(style) + "</style>\n</head>\n<body>\n<h1>" + title +
         "</h1>\n";
  if (!d.subtitle.empty()) out += "<p>" + html_text(d.subtitle) + "</p>\n";
  for (const Grid& g : d.grids) out += table_of(g);
  for (const std::string& n : d.notes) out += "<p>" + html_text(n) + "</p>\n";
  return out + "</body>\n</html>\n";
}

}  // namespace headroom::report
