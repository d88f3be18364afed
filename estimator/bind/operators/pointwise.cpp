// Operators on one tensor, element by element: the shape stays.
#include <algorithm>
#include <cmath>
#include <limits>

#include "estimator/bind/fold.h"
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

void unchanged(const NodeShaper& op) { op.same_shape(0, 0); }

/// Folds with f, on integers and on reals alike.
template <class F>
void mapped(const NodeShaper& op, F f) {
  const ShapedValue& x = op.tensor(0);
  ShapedValue* out = op.set(0, x.dtype, x.dims);
  if (!out || !x.contents) return;
  KnownContents contents = *x.contents;
  for (auto& v : contents.integers) v = wrapped(x.dtype, f(v));
  for (auto& v : contents.reals) v = rounded(x.dtype, f(v));
  out->contents = std::make_shared<const KnownContents>(std::move(contents));
}

/// The same for operators that take reals only.
void mapped_reals(const NodeShaper& op, double (*f)(double)) {
  const ShapedValue& x = op.tensor(0);
  ShapedValue* out = op.set(0, x.dtype, x.dims);
  const Reals* values = op.reals(0);
  if (!out || !values) return;
  Reals result = *values;
  for (auto& v : result) v = rounded(x.dtype, f(v));
  out->contents = known(std::move(result));
}

void abs(const NodeShaper& op) {
  mapped(op, [](auto v) { return v < 0 && v != std::numeric_limits<decltype(v)>::lowest() ? -v : v; });
}
void neg(const NodeShaper& op) {
  mapped(op, [](auto v) { return v == std::numeric_limits<decltype(v)>::lowest() ? v : -v; });
}
void sign(const NodeShaper& op) {
  mapped(op, [](auto v) { return static_cast<decltype(v)>((v > 0) - (v < 0)); });
}
void relu(const NodeShaper& op) {
  mapped(op, [](auto v) { return std::max(v, decltype(v){0}); });
}
void floor(const NodeShaper& op) { mapped_reals(op, std::floor); }
void ceil(const NodeShaper& op) { mapped_reals(op, std::ceil); }
/// Halves go to the even neighbour.
void round(const NodeShaper& op) { mapped_reals(op, std::nearbyint); }
void sqrt(const NodeShaper& op) { mapped_reals(op, std::sqrt); }
void exp(const NodeShaper& op) { mapped_reals(op, std::exp); }
void log(const NodeShaper& op) { mapped_reals(op, std::log); }
void reciprocal(const NodeShaper& op) {
  mapped_reals(op, [](double v) { return 1 / v; });
}

void bitwise_not(const NodeShaper& op) {
  const ShapedValue& x = op.tensor(0);
  ShapedValue* out = op.set(0, x.dtype, x.dims);
  const Integers* known_bits = op.integers(0);
  if (!out || !known_bits) return;
  Integers values = *known_bits;
  for (auto& v : values) v = wrapped(x.dtype, ~v);
  out->contents = known(std::move(values));
}

void logical_not(const NodeShaper& op) {
  const ShapedValue& x = op.tensor(0);
  ShapedValue* out = op.set(0, DType::b8, x.dims);
  const Integers* known_values = op.integers(0);
  if (!out || !known_values) return;
  Integers values = *known_values;
  for (auto& v : values) v = v == 0;
  out->contents = known(std::move(values));
}

/// IsNaN, IsInf.
void predicate(const NodeShaper& op) { op.set(0, DType::b8, op.dims(0)); }

/// Clip(x, min, max): attributes before opset 11, inputs after.
void clip(const NodeShaper& op) {
  const ShapedValue& x = op.tensor(0);
  ShapedValue* out = op.set(0, x.dtype, x.dims);
  if (!out || !x.contents) return;
  const auto limit = [&](std::size_t input, std::string_view attribute, double fallback) -> std::optional<double> {
    if (op.has(input)) return op.tensor(input).number();
    return op.node().real(attribute, fallback);
  };
  const auto low = limit(1, "min", -HUGE_VAL), high = limit(2, "max", HUGE_VAL);
  if (!low || !high) return;
  KnownContents contents = *x.contents;
  for (auto& v : contents.reals) v = std::min(std::max(v, *low), *high);
  // A limit of an integer tensor is a small whole number, or one that nothing reaches.
  const auto whole = [](double v) { return static_cast<std::int64_t>(std::min(std::max(v, -9e18), 9e18)); };
  for (auto& v : contents.integers) {
    if (static_cast<double>(v) < *low) v = whole(*low);
    if (static_cast<double>(v) > *high) v = whole(*high);
  }
  out->contents = std::make_shared<const KnownContents>(std::move(contents));
}

void cast_to(const NodeShaper& op, DType to) {
  const ShapedValue& x = op.tensor(0);
  ShapedValue* out = op.set(0, to, x.dims);
  if (!out || !x.contents || !foldable(to, x.dims)) return;
  if (is_float(x.dtype) && is_float(to)) {
    Reals values = x.contents->reals;
    for (auto& v : values) v = rounded(to, v);
    out->contents = known(std::move(values));
  } else if (is_float(to)) {
    Reals values;
    values.reserve(x.contents->integers.size());
    for (const auto v : x.contents->integers) values.push_back(rounded(to, static_cast<double>(v)));
    out->contents = known(std::move(values));
  } else if (is_float(x.dtype)) {
    Integers values;
    values.reserve(x.contents->reals.size());
    for (const auto v : x.contents->reals) {
      if (to != DType::b8 && !(std::fabs(v) < 9.2e18)) return;
      values.push_back(to == DType::b8 ? v != 0 : wrapped(to, static_cast<std::int64_t>(v)));
    }
    out->contents = known(std::move(values));
  } else {
    Integers values = x.contents->integers;
    for (auto& v : values) v = wrapped(to, v);
    out->contents = known(std::move(values));
  }
}

DType target_type(const NodeShaper& op) {
  const std::int64_t code = op.node().integer("to", 0);
  if (!known_dtype(code)) op.fail("the target type " + std::to_string(code) + " is no ONNX type");
  return static_cast<DType>(code);
}

void cast(const NodeShaper& op) { cast_to(op, target_type(op)); }
void cast_like(const NodeShaper& op) { cast_to(op, op.dtype(1)); }

void bit_cast(const NodeShaper& op) {
  const DType to = target_type(op);
  op.require(bits_of(to) == bits_of(op.dtype(0)), "the two types differ in width");
  op.set(0, to, op.dims(0));
}

void swiglu(const NodeShaper& op) {
  op.require(op.dims(0) == op.dims(1), "the gate and the value differ in shape");
  op.same_shape(0, 0);
}

constexpr OperatorRule rules[] = {
    {"Abs", abs},
    {"Acos", unchanged},
    {"Acosh", unchanged},
    {"Asin", unchanged},
    {"Asinh", unchanged},
    {"Atan", unchanged},
    {"Atanh", unchanged},
    {"BitwiseNot", bitwise_not},
    {"BitCast", bit_cast},
    {"Cast", cast},
    {"CastLike", cast_like},
    {"Ceil", ceil},
    {"Celu", unchanged},
    {"Clip", clip},
    {"Cos", unchanged},
    {"Cosh", unchanged},
    {"Elu", unchanged},
    {"Erf", unchanged},
    {"Exp", exp},
    {"Floor", floor},
    {"Gelu", unchanged},
    {"HardSigmoid", unchanged},
    {"HardSwish", unchanged},
    {"IsInf", predicate},
    {"IsNaN", predicate},
    {"LeakyRelu", unchanged},
    {"Log", log},
    {"Mish", unchanged},
    {"Neg", neg},
    {"Not", logical_not},
    {"Reciprocal", reciprocal},
    {"Relu", relu},
    {"Round", round},
    {"Selu", unchanged},
    {"Shrink", unchanged},
    {"Sigmoid", unchanged},
    {"Sign", sign},
    {"Sin", unchanged},
    {"Sinh", unchanged},
    {"Softplus", unchanged},
    {"Softsign", unchanged},
    {"Sqrt", sqrt},
    {"SwiGLU", swiglu},
    {"Swish", unchanged},
    {"Tan", unchanged},
    {"Tanh", unchanged},
    {"ThresholdedRelu", unchanged},
};

}  // namespace

std::span<const OperatorRule> pointwise_rules() { return rules; }

}  // namespace headroom
