// What a call costs: floating-point operations and bytes moved, from the shapes that it sees.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "estimator/base/dims.h"
#include "estimator/base/dtype.h"

namespace headroom {

struct CostTensor {
  Dims dims;
  DType dtype = DType::f32;
  bool needs_grad = false;
};

struct CallCost {
  double flops = 0, bytes = 0;                    ///< of the call
  double backward_flops = 0, backward_bytes = 0;  ///< of the gradients that backward makes for it
  bool half = false;                              ///< its products run in float16 or bfloat16

  CallCost& operator+=(const CallCost& o);
};

/// Counts as torch.utils.flop_counter does: products, convolutions and attention; everything else only moves bytes.
/// `inputs`: the tensor arguments in order, lists flattened; `equation`: einsum's. `moves`: false for views. `compute`:
/// autocast's dtype, undefined without.
CallCost cost_of(std::string_view op, std::span<const CostTensor> inputs, std::span<const CostTensor> outputs,
                 std::string_view equation, bool moves, DType compute);

/// Work as a roofline has it: the larger of what the operations and the bytes take, in picoseconds of an H200 at its
/// data sheet's rates (NVIDIA H200 SXM: 67 TFLOP/s float32, 989 TFLOP/s dense half, 4.8 TB/s). For shares, not for
/// seconds: kernels reach a part of it.
std::int64_t forward_work(const CallCost& c);
std::int64_t backward_work(const CallCost& c);

}  // namespace headroom
