#include "estimator/recover/line_statements.h"

#include <doctest/doctest.h>

using headroom::recovery::LineFollower;
using headroom::recovery::statements_of;

namespace {

/// The statement that each call belongs to.
std::vector<std::string> followed(std::string_view line, std::initializer_list<std::string_view> calls) {
  LineFollower follower(line);
  std::vector<std::string> out;
  for (const std::string_view call : calls) {
    follower.follow(call);
    out.emplace_back(follower.statement());
  }
  return out;
}

using Statements = std::vector<std::string>;

}  // namespace

TEST_CASE("the statements of a line") {
  CHECK(statements_of("a = f(x); b = g(a)").size() == 2);
  CHECK(statements_of("x = f(';', \"a;b\")").size() == 1);
  CHECK(statements_of("").size() == 1);
}

TEST_CASE("calls belong to the statement that spells them") {
  CHECK(followed("a = self.q(x); b = a + x; return f.relu(b)", {"q", "aten::add.Tensor", "aten::relu"}) ==
        Statements{"a = self.q(x)", "b = a + x", "return f.relu(b)"});
  CHECK(followed("x = x.view(2, 3).permute(1, 0); y = x[:, -1] * 2",
                 {"aten::reshape", "aten::permute", "aten::select.int", "aten::mul.Tensor"}) ==
        Statements{"x = x.view(2, 3).permute(1, 0)", "x = x.view(2, 3).permute(1, 0)", "y = x[:, -1] * 2",
                   "y = x[:, -1] * 2"});
}

TEST_CASE("an exponent is no difference") {
  CHECK(followed("l = F.l1_loss(x, y); return l / (m + 1e-5)", {"aten::sub.Tensor", "aten::abs", "aten::div.Tensor"}) ==
        Statements{"l = F.l1_loss(x, y)", "l = F.l1_loss(x, y)", "return l / (m + 1e-5)"});
}

TEST_CASE("a line that runs again begins again, a comprehension does not") {
  LineFollower loop("x = d(pool(x)); s.append(x)");
  loop.follow("d");
  const auto first = loop.number();
  loop.follow("d");
  CHECK(loop.number() != first);
  LineFollower comprehension("e = [v(x) for v in self.v]; w = f(e)");
  comprehension.follow("v");
  const auto all = comprehension.number();
  comprehension.follow("v");
  CHECK(comprehension.number() == all);
}
