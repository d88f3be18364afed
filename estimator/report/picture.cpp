#include "estimator/report/picture.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>

#include "estimator/report/escape.h"

namespace headroom::report {

std::string svg(const Picture& p) {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"11\" fill=\"currentColor\" "
      "stroke-width=\"0.7\">\n<title>{2}</title>\n",
      p.width, p.height, html_text(p.title));
  std::map<std::string_view, std::string> paths;
  for (const auto& b : p.boxes)
    paths[b.colour] += fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z", b.x, b.y, b.width, b.height, b.width);
  for (const auto& [colour, path] : paths)
    out += fmt::format("<path shape-rendering=\"crispEdges\" fill=\"#{}\" d=\"{}\"/>\n", colour, path);
  for (const auto& l : p.lines)
    out += fmt::format("<path stroke=\"currentColor\"{} d=\"M{:.1f} {:.1f}{}{:.1f}\"/>\n",
                       l.dashed ? " stroke-dasharray=\"4 4\"" : "", l.x, l.y, l.down ? 'v' : 'h', l.length);
  constexpr std::array anchors = {"start", "middle", "end"};
  for (const auto& l : p.labels)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", l.x, l.y,
                       anchors[static_cast<std::size_t>(l.align)], html_text(l.text));
  return out + "</svg>\n";
}

std::string latex_picture(const Picture& p) {
  std::string out = fmt::format("{{\\setlength{{\\unitlength}}{{{:.6f}\\linewidth}}\\scriptsize\n", 1 / p.width);
  out += fmt::format("\\begin{{picture}}({:.0f},{:.0f})\n", p.width, p.height);
  std::map<std::string_view, std::string> boxes;
  for (const auto& b : p.boxes)
    boxes[b.colour] += fmt::format("\\put({:.1f},{:.1f}){{\\rule{{{:.1f}\\unitlength}}{{{:.1f}\\unitlength}}}}%\n", b.x,
                                   p.height - b.y - b.height, b.width, b.height);
  for (const auto& [colour, put] : boxes) {
    std::string upper;
    for (const char c : colour) upper += c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
    // A blank between them would move what follows.
    out += "{\\color[HTML]{" + upper + "}%\n" + put + "}%\n";
  }
  for (const auto& l : p.lines) {
    const double y = p.height - l.y;
    out += l.dashed ? fmt::format("\\multiput({:.1f},{:.1f})(8,0){{{}}}{{\\line(1,0){{4}}}}\n", l.x, y,
                                  static_cast<int>(l.length / 8))
           : l.down ? fmt::format("\\put({:.1f},{:.1f}){{\\line(0,-1){{{:.1f}}}}}\n", l.x, y, l.length)
                    : fmt::format("\\put({:.1f},{:.1f}){{\\line(1,0){{{:.1f}}}}}\n", l.x, y, l.length);
  }
  constexpr std::array places = {"[bl]", "[b]", "[br]"};
  for (const auto& l : p.labels)
    out += fmt::format("\\put({:.1f},{:.1f}){{\\makebox(0,0){}{{{}}}}}\n", l.x, p.height - l.y,
                       places[static_cast<std::size_t>(l.align)], latex_text(l.text));
  return out + "\\end{picture}}\n";
}

}  // namespace headroom::report
