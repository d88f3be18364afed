// Window: kernel, strides, dilations and pads of a convolution or a pooling.
#pragma once

#include "estimator/bind/node_shaper.h"

namespace headroom {

struct Window {
  Dims kernel;
  Dims strides;
  Dims dilations;
  Dims pads;  ///< begins, then ends
  std::string_view auto_pad;

  /// Reads the attributes; `kernel` is kernel_shape, else `fallback` (from the weight). Fails through `op` when a list
  /// has the wrong length or a number is out of range.
  Window(const NodeShaper& op, std::size_t spatial_rank, const Dims& fallback);

  /// dilation * (kernel - 1) + 1.
  std::int64_t extent(std::size_t axis) const;
  /// Size along a spatial axis after the window has slid over `size`.
  std::int64_t slid(const NodeShaper& op, std::int64_t size, std::size_t axis, bool ceil_mode = false) const;
};

/// Dims [N, C, ...] of input `i`, of rank 3 or more.
const Dims& image_dims(const NodeShaper& op, std::size_t i);

}  // namespace headroom
