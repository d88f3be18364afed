// Tensors made of Python numbers, and random ones.
#include <array>
#include <cmath>

#include "estimator/recover/casts.h"
#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

void range(Recovery& r) {
  const auto start = r.graph.number(r.in(0)), end = r.graph.number(r.in(1)), step = r.graph.number(r.in(2));
  const DType dtype = r.dtype(r.out());
  const auto count = r.out_dims().empty() ? std::int64_t{1} : r.out_dims()[0];
  const double first = start.value_or(0), by = step.value_or(1);
  const double last = end.value_or(first + by * static_cast<double>(count));
  const auto number = [&](double x) { return is_float(dtype) ? Arg(x) : Arg(static_cast<std::int64_t>(x)); };
  if (first == 0 && by == 1) {
    r.emit("aten::arange", {number(last), dtype});
  } else if (by == 1) {
    r.emit("aten::arange.start", {number(first), number(last), dtype});
  } else {
    r.emit("aten::arange.start_step", {number(first), number(last), number(by), dtype});
  }
}

void constant_of_shape(Recovery& r) {
  const Attribute* value = r.onnx().attribute("value");
  const auto known = r.graph.number(r.out());
  const Arg dtype = stream_dtype_for(r, r.dtype(r.out()));
  double filled = known.value_or(0);
  if (!known && r.graph.value(r.out()).contents) {
    const KnownContents& c = *r.graph.value(r.out()).contents;
    if (!c.reals.empty()) filled = c.reals[0];
    if (!c.integers.empty()) filled = static_cast<double>(c.integers[0]);
  } else if (!known && value && value->tensor && value->tensor->bytes.size() >= 1) {
    for (const std::byte b : value->tensor->bytes)
      if (b != std::byte{0}) filled = 1;  // which number it is decides nothing but zeros or full
  }
  if (filled == 0) {
    r.emit("aten::zeros", {r.out_dims(), dtype});
  } else {
    const bool integral = !is_float(r.dtype(r.out()));
    r.emit("aten::full", {r.out_dims(), integral ? Arg(static_cast<std::int64_t>(filled)) : Arg(filled), dtype});
  }
}

void eye_like(Recovery& r) { r.emit("aten::eye.m", {r.out_dims()[0], r.out_dims()[1], r.dtype(r.out())}); }

void random_like(Recovery& r, std::string_view op) {
  r.emit(op, {r.out_dims(), stream_dtype_for(r, r.dtype(r.out()))});
}
void uniform(Recovery& r) { random_like(r, "aten::rand"); }
void normal(Recovery& r) { random_like(r, "aten::randn"); }
void bernoulli(Recovery& r) { r.emit("aten::bernoulli", {r.tensor(0)}); }

void multinomial(Recovery& r) { r.emit("aten::multinomial", {r.tensor(0), r.onnx().integer("sample_size", 1), true}); }

constexpr std::array list{
    OperatorHandler{"Range", range},
    OperatorHandler{"ConstantOfShape", constant_of_shape},
    OperatorHandler{"EyeLike", eye_like},
    OperatorHandler{"RandomUniform", uniform},
    OperatorHandler{"RandomUniformLike", uniform},
    OperatorHandler{"RandomNormal", normal},
    OperatorHandler{"RandomNormalLike", normal},
    OperatorHandler{"Bernoulli", bernoulli},
    OperatorHandler{"Multinomial", multinomial},
};

}  // namespace

OperatorFamily creation_operators() { return list; }

}  // namespace headroom::recovery
