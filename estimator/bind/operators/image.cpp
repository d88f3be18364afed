// Resampling, sampling grids, boxes.
#include <algorithm>
#include <cmath>

#include "estimator/bind/fold.h"
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

std::int64_t scaled(const NodeShaper& op, std::int64_t size, double scale) {
  op.require(scale > 0, "a scale is not positive");
  const double result = std::floor(static_cast<float>(size) * static_cast<float>(scale));
  op.require(result < 9e18, "a scale is too large");
  return static_cast<std::int64_t>(result);
}

/// Numbers of a float input; empty when the input is absent or empty (both mean "not given").
Reals scale_input(const NodeShaper& op, std::size_t input, std::string_view role) {
  if (!op.has(input) || element_count(op.dims(input)) == 0) return {};
  const Reals* values = op.reals(input);
  if (!values) op.fail(std::string(role) + " depend on data that only a run knows");
  return *values;
}

/// sizes under keep_aspect_ratio_policy, for the axes in `axes`.
void fit_sizes(const NodeShaper& op, const Dims& axes, const Integers& sizes, Dims& result) {
  const std::string_view policy = op.node().text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") {
    for (std::size_t i = 0; i < axes.size(); ++i) result[static_cast<std::size_t>(axes[i])] = sizes[i];
    return;
  }
  double scale = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t size = result[static_cast<std::size_t>(axes[i])];
    op.require(size > 0, "an empty dimension has no aspect ratio");
    const double ratio = static_cast<double>(sizes[i]) / static_cast<double>(size);
    scale = i == 0 ? ratio : policy == "not_larger" ? std::min(scale, ratio) : std::max(scale, ratio);
  }
  for (const auto a : axes) {
    auto& size = result[static_cast<std::size_t>(a)];
    const double fitted = std::floor(scale * static_cast<double>(size) + 0.5);
    op.require(fitted >= 0 && fitted < 9e18, "a size is out of range");
    size = static_cast<std::int64_t>(fitted);
  }
}

/// Resize(X, scales) in opset 10, (X, roi, scales, sizes) after.
void resize(const NodeShaper& op) {
  Dims result = op.dims(0);
  const auto given = op.node().integers("axes");
  const Dims axes = given.empty() ? op.axes(counted(std::ssize(result)), result.size()) : op.axes(given, result.size());
  const bool first_form = op.input_count() == 2;
  const bool by_sizes = op.has(3) && element_count(op.dims(3)) > 0;
  if (by_sizes) {
    const Integers& sizes = op.needed_integers(3, "the sizes");
    op.require(sizes.size() == axes.size(), "sizes and axes differ in length");
    fit_sizes(op, axes, sizes, result);
  } else {
    const Reals scales = scale_input(op, first_form ? 1 : 2, "the scales");
    op.require(scales.size() == axes.size(),
               std::to_string(scales.size()) + " scales for " + std::to_string(axes.size()) + " axes");
    Reals roi;
    if (op.node().text("coordinate_transformation_mode") == "tf_crop_and_resize") {
      roi = scale_input(op, 1, "the region of interest");
      op.require(roi.empty() || roi.size() == 2 * axes.size(), "the region of interest has the wrong length");
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      auto& size = result[static_cast<std::size_t>(axes[i])];
      size = scaled(op, size, scales[i] * (roi.empty() ? 1.0 : roi[axes.size() + i] - roi[i]));
    }
  }
  op.set(0, op.dtype(0), std::move(result));
}

/// Upsample: scales by attribute in opset 7, by input in 9.
void upsample(const NodeShaper& op) {
  Dims result = op.dims(0);
  Reals scales = scale_input(op, 1, "the scales");
  if (const Attribute* a = op.node().attribute("scales"); a && scales.empty())
    scales.assign(a->reals.begin(), a->reals.end());
  op.require(scales.size() == result.size(), "there must be one scale for each dimension");
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = scaled(op, result[i], scales[i]);
  op.set(0, op.dtype(0), std::move(result));
}

/// GridSample(X [N, C, ...], grid [N, out..., rank]).
void grid_sample(const NodeShaper& op) {
  const Dims& x = op.dims(0);
  op.require(x.size() >= 3, "the input has no spatial dimension");
  const Dims& grid = op.dims_of_rank(1, x.size());
  Dims result = {x[0], x[1]};
  result.insert(result.end(), grid.begin() + 1, grid.end() - 1);
  op.set(0, op.dtype(0), std::move(result));
}

/// AffineGrid(theta, size [N, C, (D,) H, W]) -> [N, (D,) H, W, 2 or 3].
void affine_grid(const NodeShaper& op) {
  const Integers& size = op.needed_integers(1, "the size");
  op.require(size.size() == 4 || size.size() == 5, "the size must have 4 or 5 numbers");
  Dims result = {size[0]};
  result.insert(result.end(), size.begin() + 2, size.end());
  result.push_back(static_cast<std::int64_t>(size.size()) - 2);
  op.set(0, op.dtype(0), std::move(result));
}

/// NonMaxSuppression(boxes [B, N, 4], scores [B, C, N], max per class): at most B * C * min(max, N) boxes.
void non_max_suppression(const NodeShaper& op) {
  const Dims &boxes = op.dims_of_rank(0, 3), &scores = op.dims_of_rank(1, 3);
  std::int64_t most = op.has(2) ? boxes[1] : 0;
  if (const Integers* given = op.integers(2); given && given->size() == 1)
    most = std::clamp((*given)[0], std::int64_t{0}, boxes[1]);
  op.set(0, DType::i64, {checked_mul(checked_mul(boxes[0], scores[1]), most), 3});
  op.bounded("how many boxes are kept depends on data");
}

void image_decoder(const NodeShaper& op) { op.fail("the size of the image depends on data that only a run knows"); }

constexpr OperatorRule rules[] = {
    {"Resize", resize},
    {"Upsample", upsample},
    {"GridSample", grid_sample},
    {"AffineGrid", affine_grid},
    {"NonMaxSuppression", non_max_suppression},
    {"ImageDecoder", image_decoder},
};

}  // namespace

std::span<const OperatorRule> image_rules() { return rules; }

}  // namespace headroom
