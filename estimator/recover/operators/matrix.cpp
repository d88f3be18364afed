// Matrix products that no pattern made a linear layer of.
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

void matmul(Recovery& r) { r.emit("aten::matmul", {r.tensor(0), r.tensor(1)}); }

void gemm(Recovery& r) {
  const auto turned = [&](std::size_t i, std::string_view attribute) {
    const SlotId x = r.tensor(i);
    return r.onnx().integer(attribute, 0) ? r.call("aten::t", {x}, std::string(r.graph.name(r.in(i))) + ".t") : x;
  };
  const SlotId a = turned(0, "transA"), b = turned(1, "transB");
  if (r.has(2)) {
    r.emit("aten::addmm", {r.tensor(2), a, b, r.onnx().real("beta", 1.0), r.onnx().real("alpha", 1.0)});
  } else {
    r.emit("aten::mm", {a, b});
  }
}

void einsum(Recovery& r) {
  Slots operands;
  for (std::size_t i = 0; i < r.onnx().inputs.size(); ++i) operands.push_back(r.tensor(i));
  r.emit("aten::einsum", {Text{std::string(r.onnx().text("equation"))}, operands});
}

void det(Recovery& r) { r.emit("aten::det", {r.tensor(0)}); }

constexpr std::array list{
    OperatorHandler{"MatMul", matmul},
    OperatorHandler{"Gemm", gemm},
    OperatorHandler{"Einsum", einsum},
    OperatorHandler{"Det", det},
};

}  // namespace

OperatorFamily matrix_operators() { return list; }

}  // namespace headroom::recovery
