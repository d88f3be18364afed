#include "estimator/report/escape.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <utility>

#include "estimator/base/text.h"

namespace headroom::report {
namespace {

constexpr std::size_t longest = 4000;

/// Code point of the UTF-8 sequence at `at`, which `printable` has made sure is whole; moves `at` past it.
char32_t next_point(std::string_view s, std::size_t& at) {
  const auto first = static_cast<unsigned char>(s[at++]);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  char32_t point = first & (0x3FU >> more);
  for (int i = 0; i < more; ++i) point = point << 6 | (static_cast<unsigned char>(s[at++]) & 0x3FU);
  return point;
}

constexpr auto latex_commands = std::to_array<std::pair<char, std::string_view>>({{'\\', "\\textbackslash{}"},
                                                                                  {'{', "\\{"},
                                                                                  {'}', "\\}"},
                                                                                  {'$', "\\$"},
                                                                                  {'&', "\\&"},
                                                                                  {'#', "\\#"},
                                                                                  {'%', "\\%"},
                                                                                  {'_', "\\_"},
                                                                                  {'^', "\\textasciicircum{}"},
                                                                                  {'~', "\\textasciitilde{}"},
                                                                                  {'<', "\\textless{}"},
                                                                                  {'>', "\\textgreater{}"},
                                                                                  {'|', "\\textbar{}"},
                                                                                  {'"', "\\char34{}"},
                                                                                  {'`', "\\textasciigrave{}"},
                                                                                  {'-', "-{}"}});  // no en dash of two

std::string_view latex_command(char c) {
  for (const auto& [plain, command] : latex_commands)
    if (plain == c) return command;
  return {};
}

}  // namespace

std::string csv_field(std::string_view s) {
  std::string clean = printable(s, longest);
  if (!clean.empty() && std::string_view("=+-@").find(clean[0]) != std::string_view::npos) clean.insert(0, "'");
  if (clean.find_first_of(",\"\n") == std::string::npos) return clean;
  std::string out = "\"";
  for (const char c : clean) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

namespace {

/// The characters that begin a tag or an entity, written as entities; others as they are.
std::string entity(char c) { return c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c); }

}  // namespace

std::string markdown_text(std::string_view s) {
  std::string out;
  for (const char c : printable(s, longest)) {
    if (std::string_view("\\`*_{}[]()#+!|~").find(c) != std::string_view::npos) out += '\\';
    out += entity(c);
  }
  return out;
}

std::string html_text(std::string_view s) {
  std::string out;
  for (const char c : printable(s, longest)) out += c == '"' ? "&quot;" : c == '\'' ? "&#39;" : entity(c);
  return out;
}

std::string latex_text(std::string_view s) {
  const std::string clean = printable(s, longest);
  std::string out;
  for (std::size_t at = 0; at < clean.size();) {
    const std::size_t from = at;
    const char32_t point = next_point(clean, at);
    if (point == U'…')
      out += "\\ldots{}";
    else if (point == U'✗')
      out += "$\\times$";
    else if (point == U'→')
      out += "$\\rightarrow$";
    else if (point == U'·')
      out += "\\textperiodcentered{}";
    else if (point >= 0x80 && (point < 0xC0 || point > 0xFF))
      out += fmt::format("U+{:04X}", static_cast<std::uint32_t>(point));
    else if (const auto command = point < 0x80 ? latex_command(clean[from]) : std::string_view(); !command.empty())
      out += command;
    else
      out += clean.substr(from, at - from);
  }
  return out;
}

std::string roff_text(std::string_view s) {
  std::string out;
  for (const char c : printable(s, longest)) {
    if (out.empty() && (c == '.' || c == '\'')) out += "\\&";  // a line that begins so is a request
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

}  // namespace headroom::report
