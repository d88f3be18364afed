// Convolutions.
#include "estimator/bind/operators/families.h"
#include "estimator/bind/operators/window.h"

namespace headroom {
namespace {

/// x [N, C, ...], w [M, C/group, ...] -> [N, M, ...].
Dims convolved(const NodeShaper& op, std::size_t x_input, std::size_t w_input) {
  const Dims &x = image_dims(op, x_input), &w = op.dims_of_rank(w_input, x.size());
  const std::int64_t group = op.node().integer("group", 1);
  op.require(group > 0 && x[1] % group == 0 && x[1] / group == w[1],
             std::to_string(x[1]) + " channels in " + std::to_string(group) + " groups do not match the weight's " +
                 std::to_string(w[1]));
  op.require(w[0] % group == 0, "the output channels do not divide into the groups");
  const Window window(op, x.size() - 2, Dims(w.begin() + 2, w.end()));
  Dims result = {x[0], w[0]};
  for (std::size_t i = 0; i + 2 < x.size(); ++i) result.push_back(window.slid(op, x[i + 2], i));
  return result;
}

void conv(const NodeShaper& op) { op.set(0, op.dtype(0), convolved(op, 0, 1)); }
void conv_integer(const NodeShaper& op) { op.set(0, DType::i32, convolved(op, 0, 1)); }
/// QLinearConv(x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B).
void qlinear_conv(const NodeShaper& op) { op.set(0, op.dtype(7), convolved(op, 0, 3)); }

/// ConvTranspose: x [N, C, ...], w [C, M/group, ...] -> [N, M, ...].
void conv_transpose(const NodeShaper& op) {
  const Dims &x = image_dims(op, 0), &w = op.dims_of_rank(1, x.size());
  const std::int64_t group = op.node().integer("group", 1);
  op.require(group > 0 && x[1] == w[0],
             std::to_string(x[1]) + " channels do not match the weight's " + std::to_string(w[0]));
  const std::size_t spatial = x.size() - 2;
  const Window window(op, spatial, Dims(w.begin() + 2, w.end()));
  const auto extra = op.node().integers("output_padding"), shape = op.node().integers("output_shape");
  op.require(extra.empty() || extra.size() == spatial, "output_padding has the wrong length");
  op.require(shape.empty() || shape.size() >= spatial, "output_shape has the wrong length");
  Dims result = {x[0], checked_mul(w[1], group)};
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t grown = checked_mul(window.strides[i], x[i + 2] - 1);
    if (!shape.empty())
      result.push_back(shape[shape.size() - spatial + i]);
    else if (window.auto_pad.starts_with("SAME"))
      result.push_back(checked_mul(x[i + 2], window.strides[i]));
    else
      result.push_back(checked_add(checked_add(grown, extra.empty() ? 0 : extra[i]),
                                   window.extent(i) - window.pads[i] - window.pads[spatial + i]));
  }
  op.set(0, op.dtype(0), std::move(result));
}

/// DeformConv(X, W, offset, B, mask): slides as a convolution does.
void deform_conv(const NodeShaper& op) {
  const Dims result = convolved(op, 0, 1);
  const Dims& offset = op.dims_of_rank(2, result.size());
  for (std::size_t i = 2; i < result.size(); ++i) op.same_size(offset[i], result[i], "output and offset sizes");
  op.set(0, op.dtype(0), result);
}

/// Col2Im(input [N, C * block, L], image_shape, block_shape) -> [N, C, image...].
void col2im(const NodeShaper& op) {
  const Dims& x = op.dims_of_rank(0, 3);
  const Integers &image = op.needed_integers(1, "the image shape"), &block = op.needed_integers(2, "the block shape");
  const std::int64_t area = element_count(Dims(block.begin(), block.end()));
  op.require(area > 0 && x[1] % area == 0, "the channels do not divide by the block");
  Dims result = {x[0], x[1] / area};
  result.insert(result.end(), image.begin(), image.end());
  op.set(0, op.dtype(0), std::move(result));
}

/// CausalConvWithState(x [N, C, L], w [C, 1, K]) -> y [N, C, L], state [N, C, K - 1].
void causal_conv(const NodeShaper& op) {
  const Dims &x = op.dims_of_rank(0, 3), &w = op.dims_of_rank(1, 3);
  op.same_size(x[1], w[0], "the channels of input and weight");
  op.same_shape(0, 0);
  op.set(1, op.dtype(0), {x[0], x[1], w[2] - 1});
}

constexpr OperatorRule rules[] = {
    {"Conv", conv},
    {"ConvInteger", conv_integer},
    {"QLinearConv", qlinear_conv},
    {"ConvTranspose", conv_transpose},
    {"DeformConv", deform_conv},
    {"Col2Im", col2im},
    {"CausalConvWithState", causal_conv},
};

}  // namespace

std::span<const OperatorRule> convolution_rules() { return rules; }

}  // namespace headroom
