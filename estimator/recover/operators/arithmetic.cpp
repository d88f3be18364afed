// Add, Sub, Mul, Div, Pow and the unary functions.
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

bool is_number(const Arg& a) { return !std::holds_alternative<SlotId>(a); }

/// The TorchScript exporter writes F.linear of a weight that was made as bias + product.
bool is_bias_of_product(const Recovery& r) {
  return !r.origins.has_text() && r.dims(r.in(0)).size() == 1 && r.dims(r.in(1)).size() > 1 &&
         r.graph.producer_op(r.in(1)) == "MatMul";
}

/// A Python expression of a tensor and another operand: the tensor's method is called.
void commutative(Recovery& r, std::string_view op) {
  Arg a = r.operand(0), b = r.operand(1);
  if (is_number(a) || is_bias_of_product(r)) std::swap(a, b);
  if (is_number(a)) a = r.tensor(0);
  r.emit(op, {a, b});
}

void add(Recovery& r) { commutative(r, "aten::add.Tensor"); }

void mul(Recovery& r) {
  // "torch.square(F.relu(x))", of which the TorchScript exporter makes a product; the factors of others are written
  // out.
  const bool square = !r.origins.has_text() && r.has(1) && r.in(0) == r.in(1) && r.graph.producer_op(r.in(0)) == "Relu";
  if (square) return (void)r.emit("aten::square", {r.tensor(0)});
  commutative(r, "aten::mul.Tensor");
}

void sub(Recovery& r) {
  const Arg a = r.operand(0), b = r.operand(1);
  if (is_number(a) && !is_number(b)) {
    r.emit("aten::rsub.Scalar", {b, a});
  } else {
    r.emit("aten::sub.Tensor", {is_number(a) ? Arg(r.tensor(0)) : a, b});
  }
}

void div(Recovery& r) {
  const Arg a = r.operand(0), b = r.operand(1);
  if (is_integer(r.dtype(r.in(0)))) {
    r.emit("aten::div.Tensor_mode", {is_number(a) ? Arg(r.tensor(0)) : a, b, Text{"trunc"}});
  } else if (is_number(a) && !is_number(b)) {
    // number / x is x.reciprocal() * number
    if (r.graph.number(r.in(0)) == 1.0) {
      r.emit("aten::reciprocal", {b});
    } else {
      const SlotId inverse = r.call("aten::reciprocal", {b}, std::string(r.graph.name(r.out())) + ".reciprocal");
      r.emit("aten::mul.Tensor", {inverse, a});
    }
  } else {
    r.emit("aten::div.Tensor", {is_number(a) ? Arg(r.tensor(0)) : a, b});
  }
}

void pow(Recovery& r) {
  const Arg a = r.operand(0), b = r.operand(1);
  if (is_number(b)) {
    r.emit("aten::pow.Tensor_Scalar", {is_number(a) ? Arg(r.tensor(0)) : a, b});
  } else {
    r.emit(is_number(a) ? "aten::pow.Scalar" : "aten::pow.Tensor_Tensor", {a, b});
  }
}

void mod(Recovery& r) {
  const Arg a = r.operand(0), b = r.operand(1);
  const bool c_style = r.onnx().integer("fmod", 0) != 0;
  if (is_number(b)) {
    r.emit(c_style ? "aten::fmod.Scalar" : "aten::remainder.Scalar", {is_number(a) ? Arg(r.tensor(0)) : a, b});
  } else {
    r.emit(c_style ? "aten::fmod.Tensor" : "aten::remainder.Tensor", {is_number(a) ? Arg(r.tensor(0)) : a, b});
  }
}

/// Max, Min, Sum, Mean of any number of tensors, two at a time.
void fold(Recovery& r, std::string_view op) {
  const std::size_t n = r.onnx().inputs.size();
  SlotId so_far = r.tensor(0);
  if (n == 1) return r.alias(r.out(), r.in(0));
  for (std::size_t i = 1; i < n; ++i) {
    if (i + 1 == n) {
      r.emit(op, {so_far, r.tensor(i)});
    } else {
      so_far = r.call(op, {so_far, r.tensor(i)}, std::string(r.graph.name(r.out())) + "." + std::to_string(i));
    }
  }
}

void maximum(Recovery& r) { fold(r, "aten::maximum"); }
void minimum(Recovery& r) { fold(r, "aten::minimum"); }
void sum(Recovery& r) { fold(r, "aten::add.Tensor"); }

void mean(Recovery& r) {
  fold(r, "aten::add.Tensor");
  const auto n = static_cast<double>(r.onnx().inputs.size());
  r.emit("aten::div.Tensor", {r.tensor(r.out()), n});
}

/// One tensor in, one out; the ATen name is the same word in lower case unless the list says another.
template <const char* Op>
void unary(Recovery& r) {
  r.emit(Op, {r.tensor(0)});
}

#define HEADROOM_UNARY(name) constexpr char name##_op[] = "aten::" #name
HEADROOM_UNARY(neg);
HEADROOM_UNARY(abs);
HEADROOM_UNARY(sqrt);
HEADROOM_UNARY(exp);
HEADROOM_UNARY(log);
HEADROOM_UNARY(sin);
HEADROOM_UNARY(cos);
HEADROOM_UNARY(tan);
HEADROOM_UNARY(asin);
HEADROOM_UNARY(acos);
HEADROOM_UNARY(atan);
HEADROOM_UNARY(sinh);
HEADROOM_UNARY(cosh);
HEADROOM_UNARY(asinh);
HEADROOM_UNARY(acosh);
HEADROOM_UNARY(atanh);
HEADROOM_UNARY(erf);
HEADROOM_UNARY(floor);
HEADROOM_UNARY(ceil);
HEADROOM_UNARY(round);
HEADROOM_UNARY(sign);
#undef HEADROOM_UNARY

/// 1 / x is x.reciprocal() * 1; the TorchScript exporter drops the product.
void reciprocal(Recovery& r) {
  if (!r.mode.torch_names || r.origins.group_of(r.node())) return (void)r.emit("aten::reciprocal", {r.tensor(0)});
  const SlotId inverse = r.call("aten::reciprocal", {r.tensor(0)}, std::string(r.graph.name(r.out())) + ".reciprocal");
  r.emit("aten::mul.Tensor", {inverse, std::int64_t{1}});
}

constexpr std::array list{
    OperatorHandler{"Add", add},
    OperatorHandler{"Sub", sub},
    OperatorHandler{"Mul", mul},
    OperatorHandler{"Div", div},
    OperatorHandler{"Pow", pow},
    OperatorHandler{"Mod", mod},
    OperatorHandler{"Max", maximum},
    OperatorHandler{"Min", minimum},
    OperatorHandler{"Sum", sum},
    OperatorHandler{"Mean", mean},
    OperatorHandler{"Neg", unary<neg_op>},
    OperatorHandler{"Abs", unary<abs_op>},
    OperatorHandler{"Sqrt", unary<sqrt_op>},
    OperatorHandler{"Exp", unary<exp_op>},
    OperatorHandler{"Log", unary<log_op>},
    OperatorHandler{"Sin", unary<sin_op>},
    OperatorHandler{"Cos", unary<cos_op>},
    OperatorHandler{"Tan", unary<tan_op>},
    OperatorHandler{"Asin", unary<asin_op>},
    OperatorHandler{"Acos", unary<acos_op>},
    OperatorHandler{"Atan", unary<atan_op>},
    OperatorHandler{"Sinh", unary<sinh_op>},
    OperatorHandler{"Cosh", unary<cosh_op>},
    OperatorHandler{"Asinh", unary<asinh_op>},
    OperatorHandler{"Acosh", unary<acosh_op>},
    OperatorHandler{"Atanh", unary<atanh_op>},
    OperatorHandler{"Erf", unary<erf_op>},
    OperatorHandler{"Floor", unary<floor_op>},
    OperatorHandler{"Ceil", unary<ceil_op>},
    OperatorHandler{"Round", unary<round_op>},
    OperatorHandler{"Sign", unary<sign_op>},
    OperatorHandler{"Reciprocal", reciprocal},
};

}  // namespace

OperatorFamily arithmetic_operators() { return list; }

}  // namespace headroom::recovery
