// How long the heavy kernels of eager PyTorch run on an H200, from the shapes that they see, in seconds.
//
// The constants are fitted to kernel times of 36 training steps (tests/truth/rates/calls.jsonl.xz, made by
// tests/gpu/calls.py): sums by kind and by model are within some 10 % of the measured ones in both directions.
#pragma once

#include <cstdint>

namespace headroom {

/// Time of forward, and of all gradients in backward.
struct KernelTime {
  double forward = 0, backward = 0;

  KernelTime& operator+=(const KernelTime& o) {
    forward += o.forward;
    backward += o.backward;
    return *this;
  }
};

/// A kernel's start and end, beside its work.
inline constexpr double launch_seconds = 2e-6;
/// What elementwise kernels reach, bytes a second.
inline constexpr double memory_rate = 3.3e12;

/// `batch` products of [rows, depth] and [depth, columns]. Backward: a product for each operand that needs a gradient.
struct ProductKernels {
  double batch = 1, rows = 1, columns = 1, depth = 1;
  bool half = false, tf32 = false;
  int gradients = 0;  ///< operands that need one

  double flops() const { return 2 * batch * rows * columns * depth; }
  KernelTime time() const;
};

/// cuDNN's, with the conversions between the orders of axes that it makes for contiguous images. Elements of whole
/// tensors; `weights_per_output`: of those, how many one element of the result (of the input, when transposed) meets.
struct ConvolutionKernels {
  double input = 0, output = 0, weights_per_output = 0, window = 1;
  double in_channels = 1, out_channels = 1;
  bool transposed = false, channels_last = false, half = false;
  int gradients = 0;

  double flops() const { return 2 * (transposed ? input : output) * weights_per_output; }
  KernelTime time() const;
};

/// One filter a channel.
struct DepthwiseKernels {
  double output = 0, window = 1;
  bool channels_last = false, half = false;
  int gradients = 0;

  double flops() const { return 2 * output * window; }
  KernelTime time() const;
};

/// Scaled dot product attention, fused.
struct AttentionKernels {
  double heads = 1, key_heads = 1;  ///< of all images
  double queries = 1, keys = 1, width = 1, value_width = 1;
  bool causal = false, dropout = false, half = false, needs_grad = false;

  double flops() const { return 2 * heads * queries * keys * (width + value_width); }
  KernelTime time() const;
};

}  // namespace headroom
