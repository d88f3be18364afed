#include "estimator/recover/fx_text.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "estimator/recover/python_names.h"

namespace headroom::recovery {

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool value(FxArg& out, int depth = 0) {
    skip();
    if (at_ >= text_.size() || depth > 32) return false;
    const char c = text_[at_];
    if (c == '(' || c == '[') return list(out, c == '(' ? ')' : ']', depth);
    if (c == '%') {
      ++at_;
      out.kind = FxArg::Kind::reference;
      out.text = word();
      return !out.text.empty();
    }
    if (c == '\'' || c == '"') return quoted(out);
    if (is_digit(c) || c == '-' || c == '+') return number(out);
    if (begins_name(c)) return named(out);
    return false;
  }

  bool list(FxArg& out, char end, int depth) {
    ++at_;
    out.kind = FxArg::Kind::list;
    while (true) {
      if (take(end)) return true;
      if (out.items.empty()) out.items.reserve(4);
      if (!value(out.items.emplace_back(), depth + 1)) return false;
      if (!take(',') && !peek(end)) return false;
    }
  }

  bool keywords(std::vector<FxKeyword>& out) {
    if (!take('{')) return false;
    while (true) {
      if (take('}')) return true;
      skip();
      FxKeyword k;
      k.name = word();
      if (k.name.empty() || !take(':') || !value(k.value)) return false;
      out.push_back(std::move(k));
      if (!take(',') && !peek('}')) return false;
    }
  }

  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view s) {
    skip();
    if (text_.substr(at_, s.size()) != s) return false;
    at_ += s.size();
    return true;
  }
  std::string_view word() {
    const std::size_t from = at_;
    while (at_ < text_.size() && (is_in_name(text_[at_]) || text_[at_] == '.')) ++at_;
    return text_.substr(from, at_ - from);
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool peek(char c) {
    skip();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool quoted(FxArg& out) {
    const char quote = text_[at_];
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return false;
    out.kind = FxArg::Kind::word;
    out.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return true;
  }
  bool number(FxArg& out) {
    const char* const begin = text_.data() + at_ + (text_[at_] == '+' ? 1 : 0);
    const char* const end = text_.data() + text_.size();
    if (std::string_view(begin, static_cast<std::size_t>(end - begin)).starts_with("-inf")) {
      at_ += 4;
      out.kind = FxArg::Kind::real;
      out.real = -std::numeric_limits<double>::infinity();
      return true;
    }
    const auto whole = std::from_chars(begin, end, out.integer);
    const auto goes_on = [&](const char* p) { return p != end && (*p == '.' || *p == 'e' || *p == 'E'); };
    if (whole.ec == std::errc{} && !goes_on(whole.ptr)) {
      out.kind = FxArg::Kind::integer;
      at_ = static_cast<std::size_t>(whole.ptr - text_.data());
      return true;
    }
    const auto real = std::from_chars(begin, end, out.real);
    if (real.ec != std::errc{}) return false;
    const bool is_integer = whole.ec == std::errc{} && whole.ptr == real.ptr;
    out.kind = is_integer ? FxArg::Kind::integer : FxArg::Kind::real;
    at_ = static_cast<std::size_t>(real.ptr - text_.data());
    return true;
  }
  bool named(FxArg& out) {
    const std::string_view w = word();
    if (w == "None") return true;
    if (w == "True" || w == "False") {
      out.kind = FxArg::Kind::boolean;
      out.integer = w == "True";
    } else if (w == "inf" || w == "nan") {
      out.kind = FxArg::Kind::real;
      out.real = w == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    } else {
      out.kind = FxArg::Kind::word;
      out.text = w;
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view fx_name(std::string_view text) {
  const std::size_t end = text.find(" :");
  return text.starts_with('%') && end != std::string_view::npos ? text.substr(1, end - 1) : std::string_view{};
}

std::optional<FxNode> parse_fx_node(std::string_view text) {
  FxNode node;
  node.name = fx_name(text);
  constexpr std::string_view target = "call_function[target=";
  const std::size_t at = text.find(target, node.name.size());
  if (node.name.empty() || at == std::string_view::npos) return std::nullopt;
  const std::size_t from = at + target.size();
  const std::size_t end = text.find("](", from);
  if (end == std::string_view::npos) return std::nullopt;
  node.target = text.substr(from, end - from);
  if (node.target.starts_with("torch.ops.")) node.target.remove_prefix(10);

  std::string_view rest = text.substr(end + 2);
  // An equation stands without quotes: "args = (bd,de->be, [%x, %w])".
  const std::size_t operands = rest.find(", [");
  if (node.target.starts_with("aten.einsum") && rest.starts_with("args = (") && operands != std::string_view::npos) {
    FxArg equation;
    equation.kind = FxArg::Kind::word;
    equation.text = rest.substr(8, operands - 8);
    FxArg list;
    Parser parser(rest.substr(operands + 2));
    if (!parser.value(list)) return std::nullopt;
    node.args = {std::move(equation), std::move(list)};
    return node;
  }
  Parser parser(rest);
  FxArg args;
  if (!parser.take(std::string_view("args =")) || !parser.value(args) || !args.is(FxArg::Kind::list)) {
    return std::nullopt;
  }
  node.args = std::move(args.items);
  if (parser.take(',') && (!parser.take(std::string_view("kwargs =")) || !parser.keywords(node.kwargs))) {
    return std::nullopt;
  }
  return node;
}

std::vector<std::string_view> parse_string_list(std::string_view text) {
  std::vector<std::string_view> out;
  out.reserve(8);
  std::size_t single = text.find('\''), twofold = text.find('"');
  while (single != twofold) {  // both are npos at the end
    const std::size_t begin = std::min(single, twofold) + 1;
    const std::size_t end = text.find(text[begin - 1], begin);
    if (end == std::string_view::npos) break;
    out.push_back(text.substr(begin, end - begin));
    if (single <= end) single = text.find('\'', end + 1);
    if (twofold <= end) twofold = text.find('"', end + 1);
  }
  return out;
}

}  // namespace headroom::recovery
