#include "estimator/shadow/tables/formula.h"

#include <doctest/doctest.h>

#include <string>

#include "estimator/base/error.h"
#include "estimator/shadow/tables/aten_table.h"

using namespace headroom;
using namespace headroom::aten;

namespace {

const HelperTable& no_helpers() {
  static const HelperTable helpers("");
  return helpers;
}

std::vector<FormulaName> some_names() {
  std::vector<FormulaName> names{{"grad", Kind::gradient, 0},
                                 {"grads", Kind::gradients},
                                 {"self", Kind::argument, 0},
                                 {"other", Kind::argument, 1},
                                 {"grad_input_mask", Kind::needed}};
  return names;
}

std::string parsed(std::string_view text) { return text_of(parse_formula(text, some_names(), no_helpers())); }

}  // namespace

TEST_CASE("precedence and association") {
  CHECK(parsed("grad + self * other") == "(grads[0] + (argument0 * argument1))");
  CHECK(parsed("grad - self - other") == "((grads[0] - argument0) - argument1)");
  CHECK(parsed("-grad * self") == "(-grads[0] * argument0)");
  CHECK(parsed("-grad.neg()") == "-grads[0].neg()");
  CHECK(parsed("self == 0. & other <= -1") == "((argument0 == 0.000000) & (argument1 <= -1))");
  CHECK(parsed("self || other && !grad") == "(argument0 || (argument1 && !grads[0]))");
  CHECK(parsed("self ? grad : other ? self : grad") == "(argument0 ? grads[0] : (argument1 ? argument0 : grads[0]))");
}

TEST_CASE("namespaces, suffixes, constructors") {
  CHECK(parsed("at::sum_to(grad, self.sym_sizes())") == "sum_to(grads[0], argument0.sym_sizes())");
  CHECK(parsed("grad.expand_symint(self.sym_sizes())") == "grads[0].expand(argument0.sym_sizes())");
  CHECK(parsed("std::tuple<Tensor, Tensor>()") == "none");
  CHECK(parsed("std::make_tuple(grad, Tensor())") == "make_tuple(grads[0], none)");
  CHECK(parsed("std::tuple<Tensor, Tensor>{grad, self}") == "{grads[0], argument0}");
  CHECK(parsed("std::get<1>(f(grad))") == "f(grads[0])[1]");
  CHECK(parsed("std::vector<c10::SymInt>(self.size(), 1)") == "filled(argument0.size(), 1)");
  CHECK(parsed("{{1, 2}}") == "{1, 2}");
  CHECK(parsed("::std::nullopt") == "none");
  CHECK(parsed("std::optional<Tensor>(grad)") == "grads[0]");
  CHECK(parsed("grads[2]") == "grads[2]");
  CHECK(parsed("grad_input_mask[1]") == "grad_input_mask[1]");
  CHECK(parsed("bias_of(self)->sym_sizes()") == "bias_of(argument0).sym_sizes()");
  CHECK(parsed("self.options().dtype(kBool)") == "bool");
  CHECK(parsed("GradMode::is_enabled() ? f(grad) : grad") == "(GradMode::is_enabled() ? f(grads[0]) : grads[0])");
}

TEST_CASE("malformed formulas are errors") {
  for (const char* text : {"",
                           "grad +",
                           "grad self",
                           "(grad",
                           "grad)",
                           "f(grad",
                           "grad.",
                           "{grad",
                           "nobody",
                           "grad ?",
                           "grad ? self",
                           "\"open",
                           "1e999",
                           "99999999999999999999",
                           "std::vector<int(1, 2)",
                           "std::tuple<Tensor",
                           "grads[",
                           "@",
                           "f(,)",
                           "std::get<x>(grad)",
                           "grad\nself"})
    CHECK_THROWS_AS_MESSAGE(parsed(text), Error, text);
}

TEST_CASE("deep nesting is an error, not a stack overflow") {
  CHECK_THROWS_AS(parsed(std::string(100000, '(')), Error);
  CHECK_THROWS_AS(parsed(std::string(100000, '-') + "grad"), Error);
  CHECK_THROWS_AS(parsed(std::string(100000, '{')), Error);
  std::string chain = "grad";
  for (int i = 0; i < 1000; ++i) chain += " + self";
  CHECK_NOTHROW(parsed(chain));
}

TEST_CASE("every formula written out and read again is the same") {
  std::vector<std::string> spelled;
  for (int i = 0; i < 64; ++i) spelled.push_back("argument" + std::to_string(i));
  for (int i = 0; i < 16; ++i) spelled.push_back("result" + std::to_string(i));
  std::vector<FormulaName> names{{"grads", Kind::gradients}, {"grad_input_mask", Kind::needed}};
  for (int i = 0; i < 64; ++i) names.push_back({spelled[static_cast<std::size_t>(i)], Kind::argument, i});
  for (int i = 0; i < 16; ++i) names.push_back({spelled[static_cast<std::size_t>(64 + i)], Kind::result, i});
  int formulas = 0;
  const Table& table = *table_for("2.13").table;
  for (const std::string_view name : table.names()) {
    for (const Derivative& d : table.find(name)->derivatives) {
      const std::string once = text_of(d.formula);
      CHECK(text_of(parse_formula(once, names, table.helpers())) == once);
      ++formulas;
    }
  }
  MESSAGE(formulas, " formulas");
}

TEST_CASE("helpers: parameters, defaults, blocks") {
  static constexpr std::string_view text =
      "# a comment\n"
      "f(a, b, c = 2, d = {}) {\n"
      "  x = a * b  # another\n"
      "  if c == 2 {\n"
      "    y = x + where(a,\n"
      "                  b, 0)\n"
      "    return y\n"
      "  } else if c == 3 {\n"
      "    return none\n"
      "  }\n"
      "  for i in 3 {\n"
      "    x = x + i\n"
      "  }\n"
      "  d[0] = 1\n"
      "  x.mul_(2)\n"
      "  return x\n"
      "}\n"
      "g() {\n  return f(1, 2)\n}\n";
  static const HelperTable table(text);
  CHECK(table.has("f"));
  CHECK_FALSE(table.has("x"));
  CHECK(table.find("f", 1) == nullptr);
  const Helper* f = table.find("f", 2);
  REQUIRE(f != nullptr);
  CHECK(f == table.find("f", 4));
  CHECK(f->parameters == 4);
  CHECK(f->required == 2);
  CHECK(f->slots == 7);  // four parameters, x, y, i
  CHECK(table.find("g", 0)->slots == 0);
}

TEST_CASE("malformed helpers are errors") {
  for (const char* text :
       {"f", "f(", "f(a", "f(a)", "f(a) {", "f(a) {\n", "f(a) {\n  return\n}\n", "f(a) {\n  1 = a\n}\n",
        "f(a = 1, b) {\n}\n", "f(a) {\n  if {\n}\n}\n", "f(a) {\n  for in a {\n  }\n}\n", "f(a) {\n  x = a y\n}\n",
        "f(a) {\n  return y\n}\n", "f(a) {\n  if a {\n    y = a\n  }\n  return y\n}\n"}) {
    CHECK_THROWS_AS_MESSAGE(
        [&] {
          const HelperTable table(text);
          table.parse_all();
        }(),
        Error, text);
  }
  CHECK_THROWS_AS(HelperTable("1 + 1\n"), Error);
  std::string deep = "f(a) {\n";
  for (int i = 0; i < 1000; ++i) deep += "if a {\n";
  CHECK_THROWS_AS(
      [&] {
        const HelperTable table(deep);
        table.parse_all();
      }(),
      Error);
}
