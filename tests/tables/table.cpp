#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "estimator/base/error.h"
#include "estimator/shadow/tables/aten_table.h"

using namespace headroom;
using namespace headroom::aten;

namespace {

const Table& torch_2_11() { return *table_for("2.11").table; }

/// Names that formulas or helpers call and nobody has: no operator, no helper, nothing built in.
std::set<std::string> missing(const Table& table) {
  std::set<std::string> names;
  const auto look = [&](const Formula& f) {
    for (const FormulaNode& n : f.nodes) {
      if ((n.kind != Kind::call && n.kind != Kind::method) || n.target != Target::operators) continue;
      const std::string_view name = f.texts[static_cast<std::size_t>(n.index)];
      if (table.overloads(name).empty()) names.emplace(name);
    }
  };
  for (const std::string_view name : table.names())
    for (const Derivative& d : table.find(name)->derivatives) look(d.formula);
  for (const std::string_view name : table.helpers().names())
    for (std::size_t n = 0; n < 16; ++n)
      if (const Helper* h = table.helpers().find(name, n)) look(h->body);
  return names;
}

}  // namespace

TEST_CASE("every line of every table parses") {
  for (const std::string_view version : table_versions()) {
    const ChosenTable chosen = table_for(version);
    CHECK(chosen.exact);
    std::size_t operators = 0, formulas = 0;
    for (const std::string_view name : chosen.table->names()) {
      const OpSchema* op = chosen.table->find(name);
      REQUIRE(op != nullptr);
      CHECK(op->name == name);
      ++operators;
      formulas += op->derivatives.size();
    }
    MESSAGE("torch ", chosen.table->version(), ": ", operators, " operators, ", formulas, " formulas");
    CHECK(formulas > 850);
    chosen.table->helpers().parse_all();
  }
}

TEST_CASE("what no helper gives is double backward, nested tensors, and a few solvers") {
  const std::set<std::string> solvers{"householder_product_backward", "linalg_lstsq_backward", "ormqr_backward",
                                      "polar_backward", "values_backward"};
  for (const std::string_view version : table_versions()) {
    for (const std::string& name : missing(*table_for(version).table)) {
      const bool known = name.find("double_backward") != std::string::npos ||
                         name.starts_with("infinitely_differentiable") || name.starts_with("not_implemented") ||
                         name.starts_with("_nested") || solvers.contains(name);
      CHECK_MESSAGE(known, name);
    }
  }
}

TEST_CASE("versions") {
  CHECK(table_for("2.13.1+cu130").exact);
  CHECK(table_for("2.13.1+cu130").table->version().starts_with("2.13"));
  CHECK_FALSE(table_for("2.9").exact);
  CHECK(table_for("2.9").table->version().starts_with("2.11"));
  CHECK(table_for("3.0").table->version().starts_with("2.13"));
  CHECK_THROWS_AS(table_for("newest"), Error);
  CHECK_THROWS_AS(table_for(""), Error);
}

TEST_CASE("a schema's arguments, defaults and aliases") {
  const OpSchema& add = *torch_2_11().find("aten::add.Tensor");
  CHECK(add.base == "add");
  CHECK(add.overload == "Tensor");
  REQUIRE(add.arguments.size() == 3);
  CHECK(add.arguments[2].name == "alpha");
  CHECK(add.arguments[2].keyword_only);
  CHECK(add.arguments[2].type == Type::scalar);
  CHECK(add.arguments[2].value.integer == 1);
  CHECK_FALSE(add.in_place);
  CHECK_FALSE(add.implicit);

  const OpSchema& transpose = *torch_2_11().find("transpose.int");
  CHECK(transpose.view);
  CHECK(transpose.arguments[0].alias == 'a');
  CHECK(transpose.returns[0].alias == 'a');
  CHECK_FALSE(transpose.returns[0].written);

  const OpSchema& split = *torch_2_11().find("split.Tensor");
  CHECK(split.view);
  CHECK(split.returns[0].list);

  const OpSchema& pool = *torch_2_11().find("avg_pool2d");
  CHECK(pool.arguments[1].list);
  CHECK(pool.arguments[1].list_size == 2);
  CHECK(pool.arguments[2].value.kind == Literal::Kind::integers);
  CHECK(pool.arguments[3].value.integer == 0);

  const OpSchema& index = *torch_2_11().find("index.Tensor");
  CHECK(index.arguments[1].list);
  CHECK(index.arguments[1].optional_elements);
  CHECK_FALSE(index.arguments[1].optional);

  const OpSchema& norm = *torch_2_11().find("native_layer_norm");
  CHECK(norm.returns.size() == 3);
  CHECK(norm.arguments[2].optional);
  CHECK(torch_2_11().find("cross_entropy_loss")->arguments[3].value.integer == 1);  // Reduction::Mean
  CHECK(torch_2_11().find("cross_entropy_loss")->arguments[4].value.integer == -100);
  CHECK(torch_2_11().find("gelu")->arguments[1].value.text == "none");
  CHECK(torch_2_11().find("no_such_operator") == nullptr);
  CHECK(torch_2_11().find("") == nullptr);
}

TEST_CASE("implicit composites, and kernels that look like one") {
  for (const char* name : {"linear", "matmul", "max_pool2d", "chunk", "one_hot", "cross_entropy_loss", "reshape"})
    CHECK_MESSAGE(torch_2_11().find(name)->implicit, name);
  for (const char* name : {"_fused_rms_norm", "mish_backward", "silu_backward", "convolution", "addmm"})
    CHECK_MESSAGE(!torch_2_11().find(name)->implicit, name);
}

TEST_CASE("autocast policies, and what 2.13 changed") {
  CHECK(torch_2_11().find("conv2d")->cast == Cast::low);
  CHECK(torch_2_11().find("conv2d.padding")->cast == Cast::none);
  CHECK(torch_2_11().find("nll_loss")->cast == Cast::fp32);
  CHECK(torch_2_11().find("softmax.int")->cast == Cast::fp32_dtype);
  CHECK(torch_2_11().find("norm.Scalar")->cast == Cast::fp32_dtype);
  CHECK(torch_2_11().find("addcmul")->cast == Cast::promote);
  CHECK(torch_2_11().find("binary_cross_entropy")->cast == Cast::refused);
  CHECK(torch_2_11().find("rms_norm")->cast == Cast::none);
  CHECK(table_for("2.13").table->find("rms_norm")->cast == Cast::fp32);
}

TEST_CASE("saved tensors: order, guards, clones") {
  const OpSchema& mul = *torch_2_11().find("mul.Tensor");
  REQUIRE(mul.saved.size() == 2);
  CHECK(mul.saved[0].name == "other");
  CHECK(mul.saved[0].guards == 1);  // only if self needs grad
  CHECK(mul.saved[1].name == "self");
  CHECK(mul.saved[1].guards == 2);
  // Formulas run in alphabetical order of their variables.
  CHECK(mul.derivatives[0].variables[0] == 1);
  CHECK(mul.derivatives[1].variables[0] == 0);

  const OpSchema& mul_ = *torch_2_11().find("mul_.Tensor");
  CHECK(mul_.in_place);
  CHECK_FALSE(mul_.saved[0].cloned);
  CHECK(mul_.saved[1].cloned);

  const OpSchema& std_ = *torch_2_11().find("std.correction");
  REQUIRE(std_.saved.size() == 2);
  CHECK_FALSE(std_.saved[0].result);
  CHECK(std_.saved[1].result);

  const OpSchema& attention = *torch_2_11().find("_scaled_dot_product_efficient_attention");
  std::string order;
  for (const Saved& s : attention.saved) order += std::string(s.name) + " ";
  CHECK(order == "attn_bias key query value log_sumexp output philox_offset philox_seed ");

  for (const char* name : {"hardtanh_", "hardswish_", "silu_", "gelu_", "clamp_", "div_.Tensor", "log_", "abs_"}) {
    const OpSchema& op = *torch_2_11().find(name);
    CHECK_MESSAGE(std::any_of(op.saved.begin(), op.saved.end(), [](const Saved& s) { return s.cloned; }), name);
  }
  for (const char* name : {"relu_", "sigmoid_", "tanh_", "exp_", "sqrt_", "leaky_relu_", "elu_", "celu_", "add_.Tensor",
                           "masked_fill_.Scalar", "div_.Scalar", "index_add_"}) {
    const OpSchema& op = *torch_2_11().find(name);
    CHECK_MESSAGE(std::none_of(op.saved.begin(), op.saved.end(), [](const Saved& s) { return s.cloned; }), name);
  }
}

TEST_CASE("nodes that PyTorch writes by hand") {
  const OpSchema& copy = *torch_2_11().find("copy_");
  REQUIRE(copy.derivatives.size() == 2);
  CHECK(text_of(copy.derivatives[0].formula) == "zeros_like(grads[0])");
  CHECK(copy.saved.empty());
}

TEST_CASE("outputs that carry no gradient") {
  CHECK(torch_2_11().find("_linalg_det")->differentiable == 0b001);
  CHECK(torch_2_11().find("linalg_lu")->differentiable == 0b110);
  // grad_U is the second differentiable output, the third output.
  const Formula& f = torch_2_11().find("linalg_lu")->derivatives[0].formula;
  CHECK(text_of(f) == "linalg_lu_backward(grads[0], grads[1], result0, result1, result2, argument1)");
}

TEST_CASE("what formulas need to know of tensors that are not saved") {
  const OpSchema& sum = *torch_2_11().find("sum.dim_IntList");
  CHECK(sum.saved.empty());
  CHECK((sum.mentioned & 1) != 0);
  CHECK(torch_2_11().find("add.Tensor")->mentioned_results == 0);
}

TEST_CASE("malformed tables are errors") {
  static const HelperTable helpers("");
  const auto parse = [](std::string_view line) {
    const std::string text = "# headroom aten table 1 | torch 9.9\n" + std::string(line) + "\n";
    const Table table(text, helpers);
    const std::string name(line.substr(0, line.find('(')));
    table.find(name);
  };
  CHECK_NOTHROW(parse("f(Tensor self) -> Tensor"));
  for (const std::string_view line :
       {"f", "f(", "f(Tensor self)", "f(Tensor) -> Tensor", "f(Tensor( self) -> Tensor",
        "f(Tensor self=1=2) -> (Tensor", "f(int x=[1,y]) -> Tensor", "f(Tensor self) -> Tensor | strange",
        "f(Tensor self) -> Tensor | cast=odd", "f(Tensor self) -> Tensor | as=g", "f(Tensor self) -> Tensor | as=f",
        "f(Tensor self) -> Tensor | - | other", "f(Tensor self) -> Tensor | - | grad",
        "f(Tensor self) -> Tensor | - | self?grad", "f(Tensor self) -> Tensor | - | - | other: grad",
        "f(Tensor self) -> Tensor | - | - | self: grad +", "f(Tensor self) -> Tensor | - | - | self", "f() -> () -> ("})
    CHECK_THROWS_AS_MESSAGE(parse(line), Error, line);
  CHECK_THROWS_AS(Table("", helpers), Error);
  CHECK_THROWS_AS(Table("g() -> ()", helpers), Error);
  CHECK_THROWS_AS(Table("# headroom aten table 1 | torch 9.9\nb() -> ()\na() -> ()\n", helpers), Error);
}

TEST_CASE("a table cut anywhere is an error or a table, never a crash") {
  static const HelperTable helpers("");
  const std::string line =
      "addmm(Tensor self, Tensor mat1, int[2]? x=[0,1], *, Scalar beta=1) -> (Tensor a, Tensor(b!)[] c) | cast=low "
      "diff=10"
      " | mat1?self,mat1 a | mat1: grad.defined() ? f({{1}}, std::get<0>(a[1])) : Tensor() | self: -grad_a * 2.5e-1";
  for (std::size_t n = 0; n <= line.size(); ++n) {
    const std::string text = "# headroom aten table 1 | torch 9.9\n" + line.substr(0, n);
    try {
      const Table table(text, helpers);
      for (const std::string_view name : table.names()) table.find(name);
    } catch (const Error&) {
    }
  }
}
