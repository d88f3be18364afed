// What a call costs: floating-point operations, bytes moved, and time, from the shapes that it sees.
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

/// A call as its cost sees it.
struct CostedCall {
  std::string_view op;                 ///< "aten::linear"
  std::span<const CostTensor> inputs;  ///< the tensor arguments in order, lists flattened
  std::span<const CostTensor> outputs;
  std::string_view equation;  ///< einsum's
  bool view = false;          ///< its results lie in its inputs' memory, and it writes nothing
  bool causal = false;        ///< attention
  bool dropout = false;       ///< attention
};

/// Times in picoseconds, on an H200 in eager mode. For shares of a step: on another card they hold as far as its speeds
/// stand in the same relation.
struct CallCost {
  double flops = 0, bytes = 0;  ///< of the call
  std::int64_t forward_work = 0;
  std::int64_t beside_work = 0;    ///< of it, the casts and copies that a kept result does not spare a rerun
  std::int64_t backward_work = 0;  ///< of the gradients that backward makes for it

  CallCost& operator+=(const CallCost& o);
};

/// What the scenario says about all calls.
struct CostMode {
  DType autocast = DType::undefined;
  bool tf32 = false;
};

/// Counts as torch.utils.flop_counter does: products, convolutions and attention; everything else only moves bytes.
/// Time: kernel_time.h for those; for the rest the bytes that its kernels read and write, at the rates of
/// tests/truth/rates/calls.jsonl.xz.
CallCost cost_of(const CostedCall& call, CostMode mode);

/// Of a segment's rerun besides its calls: it takes a launch from Python at least (tests/truth/rates/h200.json), also
/// when it stops before its first kernel.
inline constexpr std::int64_t rerun_work = 6'500'000;

}  // namespace headroom
