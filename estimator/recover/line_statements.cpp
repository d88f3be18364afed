#include "estimator/recover/line_statements.h"

#include <algorithm>
#include <array>

#include "estimator/recover/python_names.h"

namespace headroom::recovery {

namespace {

/// How a line spells operators otherwise than by their own name: by others, parted by blanks, or by a sign.
struct Spelling {
  std::string_view operators, names, sign;
};
constexpr auto spellings = std::to_array<Spelling>({
    {"add add_", "add add_", "+"},
    {"sub sub_ rsub", "sub sub_ l1_loss", "-"},
    {"neg", "neg", "-"},
    {"abs", "abs l1_loss", ""},
    {"linalg_vector_norm", "norm normalize vector_norm", ""},
    {"mul mul_", "mul mul_", "*"},
    {"div div_", "div div_", "/"},
    {"pow", "pow square", "**"},
    {"matmul", "matmul", "@"},
    {"lt", "lt", "<"},
    {"gt", "gt", ">"},
    {"le", "le", "<="},
    {"ge", "ge", ">="},
    {"eq", "eq", "=="},
    {"bitwise_and", "logical_and", "&"},
    {"bitwise_or", "logical_or", "|"},
    {"bitwise_not", "logical_not", "~"},
    {"select slice index unsqueeze index_select", "select narrow unsqueeze index_select", "["},
    {"view reshape", "view reshape flatten unflatten view_as reshape_as", ""},
    {"transpose permute t", "transpose permute t swapaxes movedim", ""},
    {"split split_with_sizes", "split chunk", ""},
    {"cat", "cat concat", ""},
    {"to", "to float half bfloat16 long int bool type type_as", ""},
    {"clamp clamp_min clamp_max", "clamp clip clamp_min clamp_max", ""},
});

/// Whether `name` is one of the words in `list`.
bool is_in(std::string_view list, std::string_view name) {
  for (std::size_t from = 0; from < list.size();) {
    const std::size_t end = std::min(list.find(' ', from), list.size());
    if (list.substr(from, end - from) == name) return true;
    from = end + 1;
  }
  return false;
}

/// Signs that stand between two operands, and brackets behind one.
bool follows_operand(std::string_view text, std::size_t at) {
  while (at > 0 && text[at - 1] == ' ') --at;
  return at > 0 && (is_in_name(text[at - 1]) || text[at - 1] == ')' || text[at - 1] == ']');
}

int count_sign(std::string_view text, std::string_view sign) {
  int n = 0;
  for (std::size_t at = text.find(sign); at != std::string_view::npos; at = text.find(sign, at + sign.size())) {
    const bool part_of_longer = sign.size() == 1 && (sign == "*" || sign == "/") &&
                                ((at + 1 < text.size() && text[at + 1] == sign[0]) || (at && text[at - 1] == sign[0]));
    const bool exponent = at > 1 && text[at - 1] == 'e' && is_digit(text[at - 2]);
    n += !part_of_longer && !exponent && follows_operand(text, at);
  }
  return n;
}

/// Calls of a function, method or module: the name, then a bracket.
int count_name(std::string_view text, std::string_view name) {
  int n = 0;
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + name.size())) {
    const std::size_t end = at + name.size();
    n += (at == 0 || !is_in_name(text[at - 1])) && end < text.size() && (text[end] == '(' || text[end] == '[');
  }
  return n;
}

/// "[f(x) for x in y]": its calls come again without another statement's beginning.
bool has_comprehension(std::string_view statement) {
  int depth = 0;
  for (std::size_t i = 0; i < statement.size(); ++i) {
    depth += statement[i] == '(' || statement[i] == '[' || statement[i] == '{';
    depth -= statement[i] == ')' || statement[i] == ']' || statement[i] == '}';
    if (depth > 0 && statement.substr(i).starts_with(" for ")) return true;
  }
  return false;
}

struct Word {
  std::string key;  ///< what calls take
  std::string names;
  std::string_view sign;

  int count(std::string_view statement) const {
    int n = sign.empty() ? 0 : count_sign(statement, sign);
    for (std::size_t from = 0; from < names.size();) {
      const std::size_t end = std::min(names.find(' ', from), names.size());
      n += count_name(statement, std::string_view(names).substr(from, end - from));
      from = end + 1;
    }
    return n;
  }
};

Word word_for(std::string_view name) {
  if (!name.starts_with("aten::")) return {std::string(name), std::string(name), {}};
  name.remove_prefix(6);
  name = name.substr(0, name.find('.'));
  const auto spelled = std::ranges::find_if(spellings, [&](const Spelling& s) { return is_in(s.operators, name); });
  if (spelled == spellings.end()) return {std::string(name), std::string(name), {}};
  return {std::string(spelled->operators), std::string(spelled->names), spelled->sign};
}

}  // namespace

std::vector<std::string_view> statements_of(std::string_view line) {
  if (line.find(';') == std::string_view::npos) return {line};
  std::vector<std::string_view> out;
  std::size_t from = 0;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ';' && depth == 0) {
      out.push_back(line.substr(from, i - from));
      from = i + 1;
      while (from < line.size() && line[from] == ' ') ++from;
    }
  }
  if (from < line.size() || out.empty()) out.push_back(line.substr(from));
  return out;
}

bool LineFollower::comprehends() const { return has_comprehension(statements_[at_]); }

void LineFollower::follow(std::string_view name, bool continues) {
  const Word word = word_for(name);
  if (continues && word.sign == "[" && !used_[at_].empty() && used_[at_].back() == word.key) return;
  const auto take = [&](std::size_t statement) {
    at_ = statement;
    used_[at_].push_back(word.key);
  };
  for (std::size_t i = at_; i < statements_.size(); ++i) {
    const auto taken = std::ranges::count(used_[i], word.key);
    if (word.count(statements_[i]) > taken) return take(i);
    if (i == at_ && taken > 0 && has_comprehension(statements_[i])) return;
  }
  if (!word.sign.empty()) return;
  for (std::size_t i = 0; i <= at_; ++i) {
    if (word.count(statements_[i]) == 0) continue;
    std::ranges::for_each(used_, [](auto& words) { words.clear(); });
    ++turn_;
    return take(i);
  }
}

}  // namespace headroom::recovery
