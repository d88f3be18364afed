#include <algorithm>

#include "estimator/base/text.h"
#include "estimator/report/document.h"
#include "estimator/report/escape.h"

namespace headroom::report {
namespace {

constexpr std::size_t longest_line = 1000;

/// Longer than any run of backticks in the code, which therefore cannot end it.
std::string fence_of(const std::vector<std::string>& lines) {
  std::size_t longest = 2;
  for (const auto& line : lines) {
    std::size_t run = 0;
    for (const char c : line) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  }
  return std::string(longest + 1, '`');
}

}  // namespace

std::string document_markdown(const Document& d, const std::string& picture_file) {
  std::string out = "# " + markdown_text(d.title) + "\n\n" + markdown_text(d.subtitle) + "\n";
  for (const Block& b : d.blocks) {
    if (b.kind == Block::Kind::picture && picture_file.empty()) continue;
    out += "\n";
    switch (b.kind) {
      case Block::Kind::heading:
        out += "## " + markdown_text(b.lines[0]) + "\n";
        break;
      case Block::Kind::paragraph:
        out += markdown_text(b.lines[0]) + "\n";
        break;
      case Block::Kind::list:
        for (const auto& item : b.lines) out += "- " + markdown_text(item) + "\n";
        break;
      case Block::Kind::code:
        out += fence_of(b.lines) + "\n";
        for (const auto& line : b.lines) out += printable(line, longest_line) + "\n";
        out += fence_of(b.lines) + "\n";
        break;
      case Block::Kind::table:
        out += grid_markdown(b.grid);
        break;
      case Block::Kind::picture:
        out += "![" + markdown_text(b.picture.title) + "](" + picture_file + ")\n";
        break;
    }
  }
  return out;
}

}  // namespace headroom::report
