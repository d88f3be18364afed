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
  bool contiguous = true;
};

/// Kernels that reach the same part of a card's speed.
enum class KernelClass : std::uint8_t {
  product,
  convolution,
  depthwise,            ///< windows below 5 x 5
  wide_depthwise,       ///< larger ones
  depthwise_last,       ///< of channels-last images
  wide_depthwise_last,  ///< as well
  attention,
  elementwise,
  normalization,  ///< and softmax, dropout: more than one pass, or random numbers
  batch_norm,
  copy,  ///< into another order, or of tensors in different ones
};

struct CallCost {
  double flops = 0, bytes = 0;                    ///< of the call
  double backward_flops = 0, backward_bytes = 0;  ///< of the gradients that backward makes for it
  KernelClass kernels = KernelClass::elementwise;
  double occupied = 1;           ///< share of the card that the call's kernels can use
  double backward_occupied = 1;  ///< as well, of those in backward
  bool half = false;             ///< runs in float16 or bfloat16
  bool tf32 = false;             ///< products in TF32, as convolutions are in any case

  CallCost& operator+=(const CallCost& o);
};

/// What the scenario says about all calls.
struct CostMode {
  DType autocast = DType::undefined;
  bool tf32 = false;
};

/// Counts as torch.utils.flop_counter does: products, convolutions and attention; everything else only moves bytes.
/// `inputs`: the tensor arguments in order, lists flattened; `equation`: einsum's. `moves`: false for views.
CallCost cost_of(std::string_view op, std::span<const CostTensor> inputs, std::span<const CostTensor> outputs,
                 std::string_view equation, bool moves, CostMode mode);

/// Time that the call, and its gradients in backward, take on an H200, in picoseconds: the larger of what its
/// operations and its bytes take at the rates that eager PyTorch reaches there, and of a launch
/// (tests/truth/rates/h200.json, medians over shapes of ordinary networks). For shares of a step: on another card they
/// hold as far as its speeds stand in the same relation.
std::int64_t forward_work(const CallCost& c);
std::int64_t backward_work(const CallCost& c);
/// Of a segment's rerun besides its calls: it takes a launch at least, also when it stops before its first kernel.
inline constexpr std::int64_t rerun_work = 6'500'000;

}  // namespace headroom
