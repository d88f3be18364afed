#include "estimator/bind/operators/window.h"

#include <algorithm>

namespace headroom {
namespace {

constexpr std::int64_t largest = std::int64_t{1} << 31;

Dims list(const NodeShaper& op, std::string_view attribute, std::size_t length, std::int64_t fallback,
          std::int64_t least) {
  const auto given = op.node().integers(attribute);
  if (given.empty()) return Dims(length, fallback);
  op.require(given.size() == length, std::string(attribute) + " has " + std::to_string(given.size()) +
                                         " numbers, not " + std::to_string(length));
  for (const auto v : given)
    op.require(v >= least && v < largest, std::string(attribute) + " has the number " + std::to_string(v));
  return Dims(given.begin(), given.end());
}

}  // namespace

Window::Window(const NodeShaper& op, std::size_t spatial_rank, const Dims& fallback)
    : kernel(fallback.empty() || op.node().attribute("kernel_shape") ? list(op, "kernel_shape", spatial_rank, 1, 1)
                                                                     : fallback),
      strides(list(op, "strides", spatial_rank, 1, 1)),
      dilations(list(op, "dilations", spatial_rank, 1, 1)),
      pads(list(op, "pads", 2 * spatial_rank, 0, -largest)),
      auto_pad(op.node().text("auto_pad", "NOTSET")) {
  op.require(!fallback.empty() || op.node().attribute("kernel_shape") != nullptr, "there is no kernel_shape");
  op.require(fallback.empty() || kernel == fallback,
             "kernel_shape " + text_of(kernel) + " is not the weight's " + text_of(fallback));
}

std::int64_t Window::extent(std::size_t axis) const {
  return checked_add(checked_mul(dilations[axis], kernel[axis] - 1), 1);
}

std::int64_t Window::slid(const NodeShaper& op, std::int64_t size, std::size_t axis, bool ceil_mode) const {
  const std::int64_t stride = strides[axis];
  if (auto_pad.starts_with("SAME")) return size / stride + (size % stride != 0);
  const std::int64_t before = auto_pad == "VALID" ? 0 : pads[axis];
  const std::int64_t after = auto_pad == "VALID" ? 0 : pads[kernel.size() + axis];
  const std::int64_t room = size + before + after - extent(axis);
  if (room < 0)
    op.fail("the window of " + std::to_string(extent(axis)) + " is larger than the padded size " +
            std::to_string(size + before + after) + " of spatial axis " + std::to_string(axis));
  std::int64_t count = room / stride + 1;
  // A last window that would start in the right padding is left out (PyTorch's pooling_output_shape).
  if (ceil_mode && room % stride != 0 && count * stride < size + before) ++count;
  return count;
}

const Dims& image_dims(const NodeShaper& op, std::size_t i) {
  const Dims& d = op.dims(i);
  op.require(d.size() >= 3, "input " + std::to_string(i) + " has no batch, channel and spatial dimension");
  return d;
}

}  // namespace headroom
