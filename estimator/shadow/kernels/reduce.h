// The reduce kernel's global buffer and semaphores (aten/src/ATen/native/cuda/Reduce.cuh, setReduceConfig), proven on
// 146 probes.
#pragma once

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

struct ReduceElement {
  int accumulator_bytes = 4;  ///< size of one accumulated value in the buffer
};

/// Sizes of a reduction's result.
Dims reduced_sizes(const TensorImpl& t, const Dims& dims, bool keepdim);
/// Output of a reduction over `dims` (empty: all), and the kernel's scratch, which comes and goes after it.
Tensor reduce(Shadow& m, const Tensor& input, const Dims& dims, bool keepdim, DType out_dtype,
              ReduceElement element = {});
/// Only the scratch of reducing `input` over `dims`.
void reduce_scratch(Shadow& m, const Tensor& input, const Dims& dims, ReduceElement element = {});
/// at::sum_to(grad, sizes): what validate_outputs does with a broadcast gradient. `grad` itself when sizes agree.
Tensor sum_to(Shadow& m, const Tensor& grad, const Dims& sizes);

}  // namespace headroom::shadow
