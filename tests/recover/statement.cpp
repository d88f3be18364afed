#include <doctest/doctest.h>

#include "estimator/recover/in_place_text.h"
#include "estimator/recover/statement.h"

using headroom::recovery::calls_for_argument;
using headroom::recovery::parse_statement;
using headroom::recovery::spelled_calls;
using Names = std::vector<std::string_view>;

TEST_CASE("what a line binds") {
  CHECK(parse_statement("x = f(x)").names == Names{"x"});
  CHECK(parse_statement("a, self.b = f(x)").names == Names{"a", "self.b"});
  CHECK(parse_statement("out[0] = y").names == Names{"out[0]"});
  CHECK(parse_statement("x: Tensor = f(y)").names == Names{"x"});
  CHECK(parse_statement("for u, c in zip(a, b): x = c(u(x))").names == Names{"x"});
  CHECK(parse_statement("def forward(self, x): h, _ = self.rnn(x)").names == Names{"h", "_"});
  CHECK(parse_statement("x += y").augmented == '+');
  CHECK(parse_statement("x += y").names == Names{"x"});
  CHECK(parse_statement("x = y").augmented == 0);
}

TEST_CASE("lines that bind nothing") {
  for (const char* line : {"", "return x", "f(x, y=2)", "if x == y:", "self.h(x)", "x == y", "x[", "assert a"})
    CHECK(parse_statement(line).names.empty());
}

TEST_CASE("what a line calls for an argument") {
  CHECK(calls_for_argument("x = block(F.max_pool2d(x, 2)); skips.append(x)", "max_pool2d"));
  CHECK(calls_for_argument("x = block(x if first else pool(x))", "pool"));
  CHECK_FALSE(calls_for_argument("x = F.max_pool2d(block(x), 2)", "max_pool2d"));
  CHECK_FALSE(calls_for_argument("x = (pool(x) + y)", "pool"));
  CHECK_FALSE(calls_for_argument("x = block(x)", "pool"));
}

TEST_CASE("which of a statement's calls are in place") {
  using Calls = std::vector<bool>;
  CHECK(spelled_calls("y.mul_(0.5).add_(1.0)", "mul") == Calls{true});
  CHECK(spelled_calls("y.mul_(0.5).mul_(x)", "mul") == Calls{true, true});
  CHECK(spelled_calls("kinds.mul_(0.1).add_(z * 0.2)", "mul") == Calls{true, false});
  CHECK(spelled_calls("x.mul_(y * z)", "mul") == Calls{false, true});
  CHECK(spelled_calls("x.add_(torch.add(y, z))", "add") == Calls{false, true});
  CHECK(spelled_calls("z = F.celu(y, inplace=True)", "celu") == Calls{true});
  CHECK(spelled_calls("relu_(x)", "relu") == Calls{true});
  CHECK(spelled_calls("x.clip_(min=0)", "clamp") == Calls{true});
  CHECK(spelled_calls("x.clamp_(min=0)", "clamp_min") == Calls{true});
  CHECK(spelled_calls("y = x.masked_fill(mask, 0)", "masked_fill").empty());
  CHECK(spelled_calls("x.scatter_add_(0, i, y)", "scatter").empty());
  CHECK(spelled_calls("x.index_add_(0, i, y)", "add").empty());
}
