// TensorIterator's decisions: common dtype, broadcast size, strides of the outputs it allocates
// (aten/src/ATen/TensorIterator.cpp), and c10's type promotion (ResultType).
#pragma once

#include <initializer_list>
#include <span>

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

/// Broadcast size of all defined tensors among `inputs`.
Dims broadcast_sizes(std::span<const Value> inputs);
/// Whether there is such a size.
bool broadcasts(std::span<const Value> inputs);

/// Common dtype of tensors and Python numbers (at::result_type).
DType result_type(std::span<const Value> inputs);
/// The same where the operator computes in floating point (true division, exp): integers become float32.
DType float_result_type(std::span<const Value> inputs);

/// Strides TensorIterator gives an output of `sizes` that it allocates itself.
Dims iterator_strides(const Dims& sizes, std::span<const Value> inputs);

/// A new tensor as an elementwise kernel makes it: broadcast size, iterator strides. On the host when all inputs are.
Tensor elementwise(Shadow& m, DType dtype, std::span<const Value> inputs);
inline Tensor elementwise(Shadow& m, DType dtype, std::initializer_list<Value> inputs) {
  return elementwise(m, dtype, std::span<const Value>(inputs.begin(), inputs.size()));
}

}  // namespace headroom::shadow
