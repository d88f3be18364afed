#include "estimator/bind/dim_expression.h"

#include <algorithm>

#include "estimator/base/bytes.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

constexpr int max_depth = 50;

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct NoValue {};

/// Recursive descent: sum = product {(+|-) product}, product = atom {(*|/|//|%) atom}.
class Parser {
 public:
  Parser(std::string_view text, const DimLookup& lookup) : rest_(text), lookup_(lookup) {}

  std::int64_t whole() {
    const std::int64_t value = sum();
    skip_blanks();
    if (!rest_.empty()) throw NoValue{};
    return value;
  }

 private:
  std::int64_t sum() {
    if (++depth_ > max_depth) throw NoValue{};
    std::int64_t value = product();
    for (;;) {
      if (take('+'))
        value = checked_add(value, product());
      else if (take('-'))
        value = checked_add(value, checked_mul(-1, product()));
      else
        break;
    }
    --depth_;
    return value;
  }

  std::int64_t product() {
    std::int64_t value = atom();
    for (;;) {
      if (take('*')) {
        value = checked_mul(value, atom());
      } else if (take('/')) {
        take('/');
        value = floor_division(value, atom());
      } else if (take('%')) {
        const std::int64_t divisor = atom();
        value -= floor_division(value, divisor) * divisor;
      } else {
        return value;
      }
    }
  }

  std::int64_t atom() {
    if (take('(')) {
      const std::int64_t value = sum();
      expect(')');
      return value;
    }
    skip_blanks();
    std::size_t n = 0;
    if (!rest_.empty() && is_digit(rest_[0])) {
      while (n < rest_.size() && is_digit(rest_[n])) ++n;
      const auto value = parse_int(taken(n));
      if (!value) throw NoValue{};
      return *value;
    }
    if (rest_.empty() || !is_name_start(rest_[0])) throw NoValue{};
    while (n < rest_.size() && (is_name_start(rest_[n]) || is_digit(rest_[n]) || rest_[n] == '.')) ++n;
    const std::string_view name = taken(n);
    if ((name == "Max" || name == "Min") && take('(')) {
      std::int64_t value = sum();
      while (take(',')) value = name == "Max" ? std::max(value, sum()) : std::min(value, sum());
      expect(')');
      return value;
    }
    const auto value = lookup_(name);
    if (!value) throw NoValue{};
    return *value;
  }

  static std::int64_t floor_division(std::int64_t a, std::int64_t b) {
    if (b <= 0) throw NoValue{};
    return a / b - (a % b < 0);
  }
  void skip_blanks() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_blanks();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) throw NoValue{};
  }
  std::string_view taken(std::size_t n) {
    const std::string_view word = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return word;
  }

  std::string_view rest_;
  const DimLookup& lookup_;
  int depth_ = 0;
};

}  // namespace

std::optional<std::int64_t> evaluate_dim(std::string_view text, const DimLookup& lookup) {
  try {
    const std::int64_t value = Parser(text, lookup).whole();
    return value >= 0 ? std::optional(value) : std::nullopt;
  } catch (const NoValue&) {
    return std::nullopt;
  } catch (const SizeOverflow&) {
    return std::nullopt;
  }
}

std::vector<std::string_view> names_in_dim(std::string_view text) {
  std::vector<std::string_view> names;
  const DimLookup collect = [&](std::string_view name) -> std::optional<std::int64_t> {
    names.push_back(name);
    return 1;
  };
  try {
    Parser(text, collect).whole();
  } catch (const NoValue&) {
    return {};
  } catch (const SizeOverflow&) {
    return {};
  }
  if (names.size() == 1 && names[0].size() == trim(text).size()) return {};
  return names;
}

}  // namespace headroom
