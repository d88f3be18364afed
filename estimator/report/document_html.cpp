#include "estimator/report/document.h"
#include "estimator/report/escape.h"
#include "estimator/report/html_page.h"

namespace headroom::report {

std::string document_html(const Document& d) {
  std::string body;
  for (const Block& b : d.blocks) switch (b.kind) {
      case Block::Kind::heading:
        body += "<h2>" + html_text(b.lines[0]) + "</h2>\n";
        break;
      case Block::Kind::paragraph:
        body += "<p>" + html_text(b.lines[0]) + "</p>\n";
        break;
      case Block::Kind::list:
        body += "<ul>\n";
        for (const auto& item : b.lines) body += "<li>" + html_text(item) + "</li>\n";
        body += "</ul>\n";
        break;
      case Block::Kind::code:
        body += "<pre>";
        for (const auto& line : b.lines) body += html_text(line) + "\n";
        body += "</pre>\n";
        break;
      case Block::Kind::table:
        body += grid_html(b.grid);
        break;
      case Block::Kind::picture:
        body += "<figure>\n" + svg(b.picture) + "</figure>\n";
        break;
    }
  return html_page(d.title, d.subtitle, body);
}

}  // namespace headroom::report
