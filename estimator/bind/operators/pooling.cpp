// Poolings.
#include <algorithm>

#include "estimator/bind/operators/families.h"
#include "estimator/bind/operators/window.h"

namespace headroom {
namespace {

/// MaxPool, AveragePool, LpPool.
void pool(const NodeShaper& op) {
  const Dims& x = image_dims(op, 0);
  const Window window(op, x.size() - 2, {});
  const bool ceil_mode = op.node().integer("ceil_mode", 0) != 0;
  Dims result = {x[0], x[1]};
  for (std::size_t i = 0; i + 2 < x.size(); ++i) result.push_back(window.slid(op, x[i + 2], i, ceil_mode));
  op.set(0, op.dtype(0), result);
  op.set(1, DType::i64, result);
}

void global_pool(const NodeShaper& op) {
  Dims result = op.dims(0);
  op.require(result.size() >= 2, "the input has no channels");
  std::fill(result.begin() + 2, result.end(), 1);
  op.set(0, op.dtype(0), std::move(result));
}

/// MaxUnpool(x, indices, output_shape).
void max_unpool(const NodeShaper& op) {
  const Dims& x = image_dims(op, 0);
  if (op.has(2)) {
    const Integers& shape = op.needed_integers(2, "the output shape");
    op.set(0, op.dtype(0), Dims(shape.begin(), shape.end()));
    return;
  }
  const Window window(op, x.size() - 2, {});
  const std::size_t spatial = x.size() - 2;
  Dims result = {x[0], x[1]};
  for (std::size_t i = 0; i < spatial; ++i)
    result.push_back(checked_add(checked_mul(window.strides[i], x[i + 2] - 1),
                                 window.kernel[i] - window.pads[i] - window.pads[spatial + i]));
  op.set(0, op.dtype(0), std::move(result));
}

/// MaxRoiPool(x [N, C, H, W], rois [R, 5]).
void max_roi_pool(const NodeShaper& op) {
  const auto pooled = op.node().integers("pooled_shape");
  op.require(pooled.size() == 2, "pooled_shape must have two numbers");
  op.set(0, op.dtype(0), {op.dims_of_rank(1, 2)[0], op.dims_of_rank(0, 4)[1], pooled[0], pooled[1]});
}

/// RoiAlign(x [N, C, H, W], rois [R, 4], batch_indices [R]).
void roi_align(const NodeShaper& op) {
  op.set(0, op.dtype(0),
         {op.dims_of_rank(1, 2)[0], op.dims_of_rank(0, 4)[1], op.node().integer("output_height", 1),
          op.node().integer("output_width", 1)});
}

constexpr OperatorRule rules[] = {
    {"MaxPool", pool},
    {"AveragePool", pool},
    {"LpPool", pool},
    {"GlobalMaxPool", global_pool},
    {"GlobalAveragePool", global_pool},
    {"GlobalLpPool", global_pool},
    {"MaxUnpool", max_unpool},
    {"MaxRoiPool", max_roi_pool},
    {"RoiAlign", roi_align},
};

}  // namespace

std::span<const OperatorRule> pooling_rules() { return rules; }

}  // namespace headroom
