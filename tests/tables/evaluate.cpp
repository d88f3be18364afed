// Expected events are measurements: single operators on [48, 80] float32 tensors, torch 2.11.0, H200.
#include "estimator/shadow/tables/evaluate.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/tables/toy_host.h"

using namespace headroom;
using namespace headroom::shadow;

namespace {

const aten::Table& table() { return *aten::table_for("2.11").table; }

/// Runs the formulas of an operator one after the other; what they return stays until the end.
class Backward {
 public:
  explicit Backward(std::string_view op) : op_(*table().find(op)) {}

  std::string run(std::vector<Value> arguments, std::vector<Value> results, std::vector<Tensor> gradients,
                  std::uint32_t wanted = ~0U) {
    host.events();
    for (const aten::Derivative& d : op_.derivatives) {
      std::uint32_t needed = 0;
      for (std::size_t i = 0; i < d.variables.size(); ++i)
        if (wanted >> d.variables[i] & 1U) needed |= 1U << i;
      if (needed == 0) continue;
      kept.push_back(evaluator.evaluate(
          d.formula, {.arguments = arguments, .results = results, .gradients = gradients, .needed = needed}));
    }
    return host.events();
  }

  Tensor x() { return host.make({48, 80}); }
  Tensor row() { return host.make({48}); }

  ToyHost host;
  Evaluator evaluator{table(), host};
  std::vector<Value> kept;

 private:
  const aten::OpSchema& op_;
};

Value dims(std::initializer_list<std::int64_t> d) { return Value(Dims(d)); }

}  // namespace

TEST_CASE("temporaries live to the end of the full expression and die in reverse") {
  Backward pow("pow.Tensor_Scalar");
  CHECK(pow.run({pow.x(), Value(3)}, {}, {pow.x()}) == "A15360 A15360 A15360 F1 F0");
  Backward reciprocal("reciprocal");
  CHECK(reciprocal.run({}, {reciprocal.x()}, {reciprocal.x()}) == "A15360 A15360 A15360 F1 F0");
  Backward tan("tan");
  CHECK(tan.run({}, {tan.x()}, {tan.x()}) == "A15360 A15360 A15360 F1 F0");
  Backward sqrt("sqrt");
  CHECK(sqrt.run({}, {sqrt.x()}, {sqrt.x()}) == "A15360 A15360 F0");
}

TEST_CASE("the right operand and the last argument come first") {
  Backward div("div.Tensor");
  CHECK(div.run({div.x(), div.x()}, {}, {div.x()}) == "A15360 A15360 A15360 A15360 F2 F1 F0 A15360");
  CHECK(div.host.calls == "div.Tensor div.Tensor neg mul.Tensor div.Tensor");
  Backward addcdiv("addcdiv");
  addcdiv.run({addcdiv.x(), addcdiv.x(), addcdiv.x(), Value(0.5)}, {}, {addcdiv.x()}, 0b100);
  CHECK(addcdiv.host.calls == "mul.Tensor mul.Scalar div.Tensor neg mul.Tensor");
  Backward power("pow.Tensor_Tensor");
  CHECK(power.run({power.x(), power.x()}, {power.x()}, {power.x()}) ==
        "A3840 A3840 A3840 F1 F0 A15360 A15360 A4 A15360 A15360 F6 F5 F4 F3 F2 "
        "A15360 A15360 A15360 A15360 A4 A3840 A15360 F13 F12 F11 F10 F9 F8");
}

TEST_CASE("a method's object comes before its arguments") {
  Backward clamp("clamp");
  CHECK(clamp.run({clamp.x(), Value(-1), Value(1)}, {}, {clamp.x()}) == "A4 A3840 A3840 A15360 F2 F1 F0");
}

TEST_CASE("locals of a helper die after its last statement's temporaries") {
  Backward std_("std.correction");
  CHECK(std_.run({std_.x(), dims({-1}), Value(), Value(false)}, {std_.row()}, {std_.row()}) ==
        "A192 A192 A48 F2 F0 A192 A15360 A192 A15360 F5 F4 F3 F1");
  Backward var("var.correction");
  CHECK(var.run({var.x(), dims({-1}), Value(), Value(false)}, {var.row()}, {var.row()}) ==
        "A192 A15360 A192 A15360 F2 F1 F0");
  Backward sinc("sinc");
  CHECK(sinc.run({sinc.x()}, {sinc.x()}, {sinc.x()}) ==
        "A15360 A15360 A15360 F1 A15360 A15360 A15360 A15360 A15360 A15360 F7 F6 F5 F4 F3 A4 A3840 A15360 F10 F9 F8 F2 "
        "F0");
  Backward atan2("atan2");
  CHECK(atan2.run({atan2.x(), atan2.x()}, {}, {atan2.x()}) ==
        "A15360 A15360 A15360 F1 F0 A15360 A3840 F4 A15360 A15360 A15360 A15360 A15360 F8 F7 F5 F3 F2");
  Backward cumprod("cumprod");
  CHECK(cumprod.run({cumprod.x(), Value(-1), Value()}, {cumprod.x()}, {cumprod.x()}) ==
        "A15360 A3840 A1 F2 A15360 A15360 A15360 F4 F3 A15360 F5 F1 F0");
  Backward cumsum("cumsum");
  CHECK(cumsum.run({cumsum.x(), Value(-1), Value()}, {}, {cumsum.x()}) == "A15360 A15360 A15360 F1 F0");
}

TEST_CASE("views and in-place calls allocate nothing") {
  Backward norm("norm.ScalarOpt_dim");
  CHECK(norm.run({norm.x(), Value(2), dims({-1}), Value(false)}, {norm.row()}, {norm.row()}) ==
        "A15360 A48 A15360 F1 F0");
  Backward logsumexp("logsumexp");
  CHECK(logsumexp.run({logsumexp.x(), dims({-1}), Value(false)}, {logsumexp.row()}, {logsumexp.row()}) ==
        "A15360 A15360 A15360 F1 F0");
  Backward sum("sum.dim_IntList");
  CHECK(sum.run({sum.x(), dims({0}), Value(false), Value()}, {}, {sum.host.make({80})}).empty());
  Backward cat("cat");
  ValueList inputs{Value(cat.x()), Value(cat.x())};
  CHECK(cat.run({Value(inputs), Value(0)}, {}, {cat.host.make({96, 80})}).empty());
  REQUIRE(cat.kept[0].is_list());
  CHECK(cat.kept[0].list()[1].tensor()->sizes == Dims{48, 80});
}

TEST_CASE("a number in front of - and / becomes a tensor") {
  ToyHost host;
  Evaluator evaluator(table(), host);
  const std::vector<aten::FormulaName> names{{"grad", aten::Kind::gradient, 0}};
  const Tensor grad = host.make({48, 80});
  const auto run = [&](std::string_view text) {
    const aten::Formula f = aten::parse_formula(text, names, table().helpers());
    host.events();
    host.calls.clear();
    const Value v = evaluator.evaluate(f, {.arguments = {}, .results = {}, .gradients = {&grad, 1}});
    return host.events();
  };
  CHECK(run("1 - grad") == "A15360");
  CHECK(host.calls == "empty_like fill_.Scalar sub_.Tensor");
  CHECK(run("1.0 / grad") == "A15360");
  CHECK(host.calls == "empty_like fill_.Scalar div_.Tensor");
  CHECK(run("2 * grad") == "A15360");
  CHECK(host.calls == "mul.Scalar");
  CHECK(run("0 < grad") == "A3840");
  CHECK(host.calls == "gt.Scalar");
  CHECK(run("maybe_multiply(grad, 1)").empty());
  CHECK(run("maybe_multiply(grad, 2)") == "A15360");
  CHECK(run("grad.conj()").empty());
}

TEST_CASE("gradients of outputs that nobody used") {
  Backward conv("convolution");
  const std::string none = conv.run({conv.host.make({1, 3, 8, 8}), conv.host.make({4, 3, 3, 3}), Value(), dims({1, 1}),
                                     dims({0, 0}), dims({1, 1}), Value(false), dims({0, 0}), Value(1)},
                                    {}, {Tensor()});
  CHECK(none.empty());
  CHECK(conv.kept[0].none());

  Backward unbind("unbind.int");
  const Value x(unbind.host.make({3, 80}));
  // Zeros for each unused slice are one element, expanded; they die in ascending order once they are stacked.
  CHECK(unbind.run({x, Value(0)}, {}, {Tensor(), unbind.host.make({80}), Tensor()}) == "A4 A4 A960 F0 F1");

  Backward split("split.Tensor");
  CHECK(split.run({Value(split.host.make({4, 80})), Value(2), Value(0)}, {}, {split.host.make({2, 80}), Tensor()}) ==
        "A640 A1280 F0");
}

TEST_CASE("only the gradients that are needed") {
  Backward atan2("atan2");
  CHECK(atan2.run({atan2.x(), atan2.x()}, {}, {atan2.x()}, 0b01) ==
        "A15360 A15360 A15360 F1 F0 A15360 A3840 F4 A15360 A15360 F5 F3 F2");
  CHECK(atan2.kept[0].list()[1].none());
}

TEST_CASE("what is not modelled says so and frees what was made") {
  ToyHost host;
  Evaluator evaluator(table(), host);
  const std::vector<aten::FormulaName> names{{"grad", aten::Kind::gradient, 0}};
  const Tensor grad = host.make({48, 80});
  for (const char* text :
       {"not_implemented(\"x\")", "no_such_function(grad * 2)", "(grad * 2).no_such_method()", "grad[7]", "1 / 0",
        "grad ? grad : grad", "clamp_backward(grad)", "{1, 2}[5]", "filled(-1, 2)", "filled(99999999999, 2)",
        "grad && true", "-none", "{1, 2}[none]", "none || true", "none * 2", "\"a\" * grad"}) {
    const aten::Formula f = aten::parse_formula(text, names, table().helpers());
    host.events();
    CHECK_THROWS_AS_MESSAGE(evaluator.evaluate(f, {.arguments = {}, .results = {}, .gradients = {&grad, 1}}),
                            NotModelled, text);
    const std::string events = host.events();
    CHECK((events.empty() || events == "A15360 F0"));
  }
}

TEST_CASE("a helper that calls itself for ever ends") {
  static const aten::HelperTable helpers("f(x) {\n  return f(x)\n}\n");
  static const aten::Table small("# headroom aten table 1 | torch 9.9\n", helpers);
  ToyHost host;
  Evaluator evaluator(small, host);
  const std::vector<Value> args{Value(1)};
  CHECK_THROWS_AS(evaluator.call_helper("f", args), NotModelled);
}

TEST_CASE("statements") {
  static const aten::HelperTable helpers(
      "lists(n) {\n  a = {}\n  for i in n {\n    if i % 2 == 0 {\n      a.push_back(i * i)\n    }\n  }\n  a[0] = 7\n"
      "  return make_tuple(a, length(a), a.back())\n}\n"
      "scopes(x) {\n  y = none\n  if x > 1 {\n    y = x * 10\n    z = y\n  } else {\n    y = 1\n  }\n  return y\n}\n"
      "early(l) {\n  for e in l {\n    if e > 2 {\n      return e\n    }\n  }\n  return -1\n}\n"
      "optional(p, q = 3) {\n  return p.value_or(q) + (p.has_value() ? 1 : 0)\n}\n");
  static const aten::Table small("# headroom aten table 1 | torch 9.9\n", helpers);
  ToyHost host;
  Evaluator evaluator(small, host);
  const auto call = [&](std::string_view name, Value v) {
    const std::vector<Value> args{std::move(v)};
    return evaluator.call_helper(name, args);
  };
  const Value lists = call("lists", Value(5));
  CHECK(lists.list()[0].integers() == Dims{7, 4, 16});
  CHECK(lists.list()[1].integer() == 3);
  CHECK(lists.list()[2].integer() == 16);
  CHECK(call("scopes", Value(2)).integer() == 20);
  CHECK(call("scopes", Value(0)).integer() == 1);
  CHECK(call("early", dims({1, 5, 9})).integer() == 5);
  CHECK(call("early", dims({1})).integer() == -1);
  CHECK(call("optional", Value()).integer() == 3);
  CHECK(call("optional", Value(8)).integer() == 9);
}
