#include "estimator/recover/statement.h"

#include <algorithm>

#include "estimator/recover/python_names.h"

namespace headroom::recovery {

namespace {

bool is_in_dotted_name(char c) { return is_in_name(c) || c == '.'; }

/// A name, dotted and subscripted: `x`, `self.h`, `out[0]`. Advances `at` past it; empty when there is none.
std::string_view take_target(std::string_view line, std::size_t& at) {
  const std::size_t from = at;
  if (at >= line.size() || !begins_name(line[at])) return {};
  while (at < line.size() && is_in_dotted_name(line[at])) ++at;
  if (at < line.size() && line[at] == '[') {
    const std::size_t close = line.find(']', at);
    if (close == std::string_view::npos) return {};
    at = close + 1;
  }
  return line.substr(from, at - from);
}

void skip_spaces(std::string_view line, std::size_t& at) {
  while (at < line.size() && line[at] == ' ') ++at;
}

std::string_view without_prefix(std::string_view line) {
  if (line.find(": ") == std::string_view::npos) return line;
  for (const std::string_view word : {"for ", "if ", "with ", "elif ", "while ", "def ", "else"}) {
    if (!line.starts_with(word)) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string_view::npos && colon + 2 < line.size() && begins_name(line[colon + 2]))
      return line.substr(colon + 2);
  }
  return line;
}

}  // namespace

Statement parse_statement(std::string_view line) {
  line = without_prefix(line);
  Statement s;
  std::size_t at = 0;
  while (true) {
    const std::string_view target = take_target(line, at);
    if (target.empty()) return {};
    s.names.push_back(target);
    skip_spaces(line, at);
    if (at >= line.size()) return {};
    if (line[at] == ',') {
      ++at;
      skip_spaces(line, at);
      continue;
    }
    break;
  }
  const char c = line[at];
  if ((c == '+' || c == '-' || c == '*' || c == '/') && at + 1 < line.size() && line[at + 1] == '=') {
    s.augmented = c;
    return s.names.size() == 1 ? s : Statement{};
  }
  if (c == ':') {  // an annotation: "x: Tensor = …"
    at = line.find('=', at);
    if (at == std::string_view::npos) return {};
  }
  const bool binds = line[at] == '=' && !(at + 1 < line.size() && line[at + 1] == '=');
  return binds ? s : Statement{};
}

bool calls_for_argument(std::string_view line, std::string_view function) {
  std::vector<bool> open;  // by parenthesis: that of a call
  bool found = false;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == ')' && !open.empty()) open.pop_back();
    if (line[at] != '(') continue;
    std::size_t from = at;
    while (from > 0 && is_in_dotted_name(line[from - 1])) --from;
    const std::string_view callee = line.substr(from, at - from);
    if (callee == function || (callee.ends_with(function) && callee[callee.size() - function.size() - 1] == '.')) {
      if (std::find(open.begin(), open.end(), true) == open.end()) return false;
      found = true;
    }
    open.push_back(!callee.empty());
  }
  return found;
}

}  // namespace headroom::recovery
