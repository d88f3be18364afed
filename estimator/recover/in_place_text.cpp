#include "estimator/recover/in_place_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "estimator/recover/python_names.h"

namespace headroom::recovery {

namespace {

struct Sign {
  std::string_view name, sign;
};
constexpr auto signs = std::to_array<Sign>({{"add", "+"}, {"sub", "-"}, {"mul", "*"}, {"div", "/"}});

/// Where the parenthesis that opens at `open` is closed.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    depth += text[at] == '(';
    depth -= text[at] == ')';
    if (depth == 0) return at;
  }
  return text.size();
}

}  // namespace

std::vector<bool> spelled_calls(std::string_view statement, std::string_view name) {
  const bool by_argument = statement.find("inplace=True") != std::string_view::npos;
  if (!by_argument && statement.find("_(") == std::string_view::npos) return {};
  // A call is made where its parenthesis closes, an operator behind its sign.
  std::vector<std::pair<std::size_t, bool>> found;
  const auto look_for = [&](std::string_view spelling) {
    for (std::size_t at = statement.find(spelling); at != std::string_view::npos;
         at = statement.find(spelling, at + 1)) {
      std::size_t open = at + spelling.size();
      const bool method = open < statement.size() && statement[open] == '_';
      open += method ? 1 : 0;
      const bool other = at > 0 && is_in_name(statement[at - 1]);  // of a longer name
      if (other || open >= statement.size() || statement[open] != '(') continue;
      found.emplace_back(closing(statement, open), method || by_argument);
    }
  };
  look_for(name);
  if (name.starts_with("clamp")) {
    look_for("clip");
    if (name != "clamp") look_for("clamp");
  }
  for (const auto& [operation, sign] : signs)
    if (operation == name)
      for (std::size_t at = statement.find(sign); at != std::string_view::npos; at = statement.find(sign, at + 1))
        found.emplace_back(at, false);
  std::ranges::sort(found);
  std::vector<bool> out;
  for (const auto& [end, in_place] : found) out.push_back(in_place);
  return out;
}

}  // namespace headroom::recovery
