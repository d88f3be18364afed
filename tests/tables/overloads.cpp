#include "estimator/shadow/tables/overloads.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "estimator/shadow/autograd.h"

using namespace headroom;
using namespace headroom::shadow;

namespace {

const aten::Table& table() { return *aten::table_for("2.11").table; }

Value tensor() { return Value(Tensor(new TensorImpl)); }

std::string chosen(std::string_view base, std::initializer_list<Value> args) {
  const std::vector<Value> all(args);
  const aten::OpSchema* op = choose_overload(table(), base, all);
  return op ? std::string(op->name) : "none";
}

}  // namespace

TEST_CASE("overloads as C++ chooses them") {
  CHECK(chosen("mul", {tensor(), tensor()}) == "mul.Tensor");
  CHECK(chosen("mul", {tensor(), Value(2)}) == "mul.Scalar");
  CHECK(chosen("mul_", {tensor(), Value(2.5)}) == "mul_.Scalar");
  CHECK(chosen("pow", {tensor(), Value(3.0)}) == "pow.Tensor_Scalar");
  CHECK(chosen("pow", {tensor(), tensor()}) == "pow.Tensor_Tensor");
  CHECK(chosen("pow", {Value(2), tensor()}) == "pow.Scalar");
  CHECK(chosen("div", {tensor(), tensor(), Value("floor")}) == "div.Tensor_mode");
  CHECK(chosen("sum", {tensor()}) == "sum");
  CHECK(chosen("sum", {tensor(), Value(Dims{0, 1}), Value(true)}) == "sum.dim_IntList");
  CHECK(chosen("sum", {tensor(), Value(0), Value(false)}) == "sum.dim_IntList");
  CHECK(chosen("mean", {tensor()}) == "mean");
  CHECK(chosen("mean", {tensor(), Value(Dims{1}), Value(true)}) == "mean.dim");
  CHECK(chosen("squeeze", {tensor(), Value(0)}) == "squeeze.dim");
  CHECK(chosen("squeeze", {tensor(), Value(Dims{0})}) == "squeeze.dims");
  CHECK(chosen("where", {tensor(), tensor(), tensor()}) == "where.self");
  CHECK(chosen("where", {tensor(), Value(0), tensor()}) == "where.ScalarSelf");
  CHECK(chosen("where", {tensor(), tensor(), Value(0)}) == "where.ScalarOther");
  CHECK(chosen("masked_fill", {tensor(), tensor(), Value(0)}) == "masked_fill.Scalar");
  CHECK(chosen("scatter", {tensor(), Value(0), tensor(), Value(0)}) == "scatter.value");
  CHECK(chosen("transpose", {tensor(), Value(-2), Value(-1)}) == "transpose.int");
  CHECK(chosen("index", {tensor(), Value(ValueList{Value(), tensor()})}) == "index.Tensor");
  CHECK(chosen("to", {tensor(), Value(DType::f16)}) == "to.dtype");
  CHECK(chosen("arange", {Value(0), Value(8), Value(DType::i64)}) == "arange.start");
  CHECK(chosen("mul", {tensor()}) == "none");
  CHECK(chosen("mul", {tensor(), Value("x")}) == "none");
  CHECK(chosen("nothing", {tensor()}) == "none");
}

TEST_CASE("defaults are filled in, one dtype stands for TensorOptions") {
  const aten::OpSchema& zeros = *table().find("zeros");
  BoundArguments bound;
  const std::vector<Value> args{Value(Dims{2, 3}), Value(DType::bf16)};
  REQUIRE(bind_arguments(zeros, args, bound));
  CHECK(bound.size() == zeros.arguments.size());
  CHECK(bound[1].dtype() == DType::bf16);
  CHECK(bound[4].none());

  const aten::OpSchema& flip = *table().find("flip");
  const std::vector<Value> one{tensor(), Value(1)};
  REQUIRE(bind_arguments(flip, one, bound));
  CHECK(bound[1].integers() == Dims{1});
  const aten::OpSchema& sum = *table().find("sum.dim_IntList");
  REQUIRE(bind_arguments(sum, one, bound));
  CHECK(bound[1].integers() == Dims{1});
  CHECK_FALSE(bound[2].boolean());

  const aten::OpSchema& pool = *table().find("avg_pool2d");
  const std::vector<Value> kernel{tensor(), Value(Dims{2, 2})};
  REQUIRE(bind_arguments(pool, kernel, bound));
  CHECK(bound[3].integers() == Dims{0, 0});
}
