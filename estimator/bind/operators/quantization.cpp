// Quantising and back.
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

/// The type that the attribute output_dtype names; else the zero point's; else `fallback`.
DType quantized_type(const NodeShaper& op, std::size_t zero_point, DType fallback) {
  const std::int64_t code = op.node().integer("output_dtype", 0);
  if (known_dtype(code)) return static_cast<DType>(code);
  return op.has(zero_point) ? op.dtype(zero_point) : fallback;
}

void quantize(const NodeShaper& op) { op.set(0, quantized_type(op, 2, DType::u8), op.dims(0)); }

void dequantize(const NodeShaper& op) {
  const std::int64_t code = op.node().integer("output_dtype", 0);
  op.set(0, known_dtype(code) ? static_cast<DType>(code) : op.dtype(1), op.dims(0));
}

void dynamic_quantize(const NodeShaper& op) {
  op.set(0, DType::u8, op.dims(0));
  op.set(1, DType::f32, {});
  op.set(2, DType::u8, {});
}

constexpr OperatorRule rules[] = {
    {"QuantizeLinear", quantize}, {"DequantizeLinear", dequantize}, {"DynamicQuantizeLinear", dynamic_quantize}};

}  // namespace

std::span<const OperatorRule> quantization_rules() { return rules; }

}  // namespace headroom
