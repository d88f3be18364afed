#include "estimator/bind/dim_expression.h"

#include <doctest/doctest.h>

#include <string>

using namespace headroom;

namespace {

std::optional<std::int64_t> value(std::string_view text) {
  return evaluate_dim(text, [](std::string_view name) -> std::optional<std::int64_t> {
    if (name == "a") return 7;
    if (name == "b.c") return 10;
    return std::nullopt;
  });
}

}  // namespace

TEST_CASE("formulas of dims") {
  CHECK(value("12") == 12);
  CHECK(value("a") == 7);
  CHECK(value("2*a + b.c") == 24);
  CHECK(value("16*((a//2))") == 48);
  CHECK(value("(((a - 1)//4)) + 1") == 2);
  CHECK(value("b.c % a - 1") == 2);
  CHECK(value("Max(1, a, b.c) * Min(a, 3)") == 30);
}

TEST_CASE("what is no size has no value") {
  for (const char* text : {"", "x", "a +", "(a", "a)", "a b", "a//0", "a - 8", "9223372036854775807 * 2", "-3", "Max()",
                           "99999999999999999999"})
    CHECK_MESSAGE(!value(text), text);
  CHECK(!value(std::string(100000, '(')));
}

TEST_CASE("names in a formula") {
  CHECK(names_in_dim("batch").empty());
  CHECK(names_in_dim("32").empty());
  CHECK(names_in_dim("batch size").empty());
  CHECK(names_in_dim("2*s0") == std::vector<std::string_view>{"s0"});
  CHECK(names_in_dim("past + seq") == std::vector<std::string_view>{"past", "seq"});
}
