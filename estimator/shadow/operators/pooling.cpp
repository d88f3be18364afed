// Pools (aten/src/ATen/native/Pooling.cpp, cuda/DilatedMaxPool2d.cu, cuda/AveragePool2d.cu, cuda/Adaptive*.cu and the
// three-dimensional ones). Outputs lie in the input's suggested memory format; inputs that do not are copied for the
// time of the kernel.
#include <algorithm>

#include "estimator/shadow/kernels/spatial.h"
#include "estimator/shadow/operator.h"
#include "estimator/shadow/shadow.h"

namespace headroom::shadow {
namespace {

struct Window {
  Dims kernel, stride, padding, dilation;
  bool ceil_mode = false;
};

/// pooling_output_shape of the last `kernel.size()` dimensions; a window must start inside the input or its padding.
Dims pooled_sizes(const TensorImpl& t, const Window& w) {
  Dims sizes = t.sizes;
  const std::size_t n = w.kernel.size(), first = sizes.size() - n;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t in = sizes[first + i], reach = w.dilation[i] * (w.kernel[i] - 1) + 1;
    const std::int64_t room = in + 2 * w.padding[i] - reach;
    std::int64_t out = (w.ceil_mode ? (room + w.stride[i] - 1) / w.stride[i] : room / w.stride[i]) + 1;
    if (w.ceil_mode && (out - 1) * w.stride[i] >= in + w.padding[i]) --out;
    sizes[first + i] = out;
  }
  return sizes;
}

/// Arguments kernel_size, stride (empty: the kernel's), padding from `first` on.
Window window(Args a, std::size_t first, std::size_t dims) {
  Window w;
  w.kernel = spread(a[first], dims);
  w.stride = spread(a[first + 1], dims);
  if (w.stride.empty()) w.stride = w.kernel;
  w.padding = spread(a[first + 2], dims);
  w.dilation = Dims(dims, 1);
  return w;
}

// aten::max_pool{2,3}d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) -> (output, indices)
template <std::size_t dims>
Outputs max_pool_with_indices(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  Window w = window(a, 1, dims);
  w.dilation = spread(a[4], dims);
  w.ceil_mode = a.boolean(5);
  const Dims sizes = pooled_sizes(*input, w);
  const MemoryFormat format = suggested_format(input);
  Tensor out = empty_spatial(m, sizes, input->dtype, format);
  Tensor indices = empty_spatial(m, sizes, DType::i64, format);
  in_format_of(m, input, format);
  return {std::move(out), std::move(indices)};
}

/// A pool's gradient: in the input's format; the incoming gradient is copied into it for the kernel.
Outputs input_gradient(Shadow& m, const Tensor& grad, const Tensor& input) {
  const MemoryFormat format = suggested_format(input);
  Tensor out = empty_spatial(m, input->sizes, input->dtype, format);
  in_format_of(m, grad, format);
  return {std::move(out)};
}

// aten::*_pool*_backward(grad_output, self, ...)
Outputs pool_backward(Shadow& m, Args a) { return input_gradient(m, a.tensor(0), a.tensor(1)); }

// aten::avg_pool{2,3}d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override?)
template <std::size_t dims>
Outputs avg_pool(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  Window w = window(a, 1, dims);
  w.ceil_mode = a.boolean(4);
  const MemoryFormat format = suggested_format(input);
  Tensor out = empty_spatial(m, pooled_sizes(*input, w), input->dtype, format);
  in_format_of(m, input, format);
  return {std::move(out)};
}

// aten::_adaptive_avg_pool{2,3}d(self, output_size)
template <std::size_t dims>
Outputs adaptive_avg_pool_kernel(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const MemoryFormat format = suggested_format(input);
  const Tensor dense = in_format_of(m, input, format);
  return {empty_spatial(m, with_last(input->sizes, spread(a[1], dims)), input->dtype, format)};
}

// aten::adaptive_max_pool{2,3}d(self, output_size) -> (output, indices)
template <std::size_t dims>
Outputs adaptive_max_pool(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const Dims sizes = with_last(input->sizes, spread(a[1], dims));
  Tensor out = m.empty(sizes, input->dtype);
  Tensor indices = m.empty(sizes, DType::i64);
  m.contiguous(input);
  return {std::move(out), std::move(indices)};
}

// aten::adaptive_max_pool{2,3}d_backward(grad_output, self, indices)
Outputs adaptive_max_pool_backward(Shadow& m, Args a) {
  Tensor out = m.empty(a.tensor(1)->sizes, a.tensor(1)->dtype);
  m.contiguous(a.tensor(0));
  return {std::move(out)};
}

// aten::fractional_max_pool{2,3}d(self, kernel_size, output_size, random_samples) -> (output, indices)
template <std::size_t dims>
Outputs fractional_max_pool(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const Dims sizes = with_last(input->sizes, spread(a[2], dims));
  Tensor out = m.empty(sizes, input->dtype);
  Tensor indices = m.empty(sizes, DType::i64);
  return {std::move(out), std::move(indices)};
}

// aten::max_unpool{2,3}d(self, indices, output_size, ...)
Outputs max_unpool(Shadow& m, Args a) {
  return {m.empty(with_last(a.tensor(0)->sizes, a.integers(2)), a.tensor(0)->dtype)};
}

// ---- above autograd ------------------------------------------------------------------------------------------------

// aten::max_pool{2,3}d: the values of ..._with_indices.
Outputs max_pool2d(Shadow& m, Args a) { return {m.dispatch("aten::max_pool2d_with_indices", a.values())[0]}; }
Outputs max_pool3d(Shadow& m, Args a) { return {m.dispatch("aten::max_pool3d_with_indices", a.values())[0]}; }

Tensor with_height(Shadow& m, const Value& t) { return m.one("aten::unsqueeze", t, -2); }
Tensor without_height(Shadow& m, const Value& t) { return m.one("aten::squeeze.dim", t, -2); }

/// A one-dimensional parameter for maps of height 1.
Value planar(const Value& v, std::int64_t height) {
  const Dims width = spread(v, 1);
  return width.empty() ? Value(Dims{}) : Value(Dims{height, width[0]});
}

// aten::max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode) -> (output, indices)
Outputs max_pool1d_with_indices(Shadow& m, Args a) {
  Outputs out = m.all("aten::max_pool2d_with_indices", with_height(m, a[0]), planar(a[1], 1), planar(a[2], 1),
                      planar(a[3], 0), planar(a[4], 1), a[5]);
  return {without_height(m, out[0]), without_height(m, out[1])};
}
Outputs max_pool1d(Shadow& m, Args a) { return {max_pool1d_with_indices(m, a)[0]}; }

// aten::avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad)
Outputs avg_pool1d(Shadow& m, Args a) {
  const Tensor out =
      m.one("aten::avg_pool2d", with_height(m, a[0]), planar(a[1], 1), planar(a[2], 1), planar(a[3], 0), a[4], a[5]);
  return {without_height(m, out)};
}

// aten::adaptive_avg_pool1d(self, output_size)
Outputs adaptive_avg_pool1d(Shadow& m, Args a) {
  return {without_height(m, m.one("aten::adaptive_avg_pool2d", with_height(m, a[0]), planar(a[1], 1)))};
}

// aten::adaptive_max_pool1d(self, output_size) -> (output, indices)
Outputs adaptive_max_pool1d(Shadow& m, Args a) {
  Outputs out = m.all("aten::adaptive_max_pool2d", with_height(m, a[0]), planar(a[1], 1));
  return {without_height(m, out[0]), without_height(m, out[1])};
}

// aten::adaptive_avg_pool{2,3}d(self, output_size): to a single value it is a mean.
template <std::size_t dims>
Outputs adaptive_avg_pool(Shadow& m, Args a) {
  const Dims size = spread(a[1], dims);
  if (std::any_of(size.begin(), size.end(), [](std::int64_t n) { return n != 1; }))
    return m.all(dims == 2 ? "aten::_adaptive_avg_pool2d" : "aten::_adaptive_avg_pool3d", a[0], size);
  const Dims over = dims == 2 ? Dims{-1, -2} : Dims{-1, -2, -3};
  const Tensor& input = a.tensor(0);
  const Tensor mean = m.one("aten::mean.dim", input, over, true);
  if (dims == 3 || !suggests_channels_last(*input)) return {mean};
  const std::int64_t c = input->sizes[1];
  return m.all("aten::as_strided_", mean, Dims{input->sizes[0], c, 1, 1}, Dims{c, 1, c, c});
}

using Kind = Operator::Kind;
constexpr Operator operators[] = {
    {"aten::max_pool1d", Kind::composite, max_pool1d},
    {"aten::max_pool1d_with_indices", Kind::composite, max_pool1d_with_indices},
    {"aten::max_pool2d", Kind::composite, max_pool2d},
    {"aten::max_pool3d", Kind::composite, max_pool3d},
    {"aten::max_pool2d_with_indices", Kind::kernel, max_pool_with_indices<2>},
    {"aten::max_pool2d_with_indices_backward", Kind::kernel, pool_backward},
    {"aten::max_pool3d_with_indices", Kind::kernel, max_pool_with_indices<3>},
    {"aten::max_pool3d_with_indices_backward", Kind::kernel, pool_backward},
    {"aten::avg_pool1d", Kind::composite, avg_pool1d},
    {"aten::avg_pool2d", Kind::kernel, avg_pool<2>},
    {"aten::avg_pool2d_backward", Kind::kernel, pool_backward},
    {"aten::avg_pool3d", Kind::kernel, avg_pool<3>},
    {"aten::avg_pool3d_backward", Kind::kernel, pool_backward},
    {"aten::adaptive_avg_pool1d", Kind::composite, adaptive_avg_pool1d},
    {"aten::adaptive_avg_pool2d", Kind::composite, adaptive_avg_pool<2>},
    {"aten::adaptive_avg_pool3d", Kind::composite, adaptive_avg_pool<3>},
    {"aten::_adaptive_avg_pool2d", Kind::kernel, adaptive_avg_pool_kernel<2>},
    {"aten::_adaptive_avg_pool2d_backward", Kind::kernel, pool_backward},
    {"aten::_adaptive_avg_pool3d", Kind::kernel, adaptive_avg_pool_kernel<3>},
    {"aten::_adaptive_avg_pool3d_backward", Kind::kernel, pool_backward},
    {"aten::adaptive_max_pool1d", Kind::composite, adaptive_max_pool1d},
    {"aten::adaptive_max_pool2d", Kind::kernel, adaptive_max_pool<2>},
    {"aten::adaptive_max_pool2d_backward", Kind::kernel, adaptive_max_pool_backward},
    {"aten::adaptive_max_pool3d", Kind::kernel, adaptive_max_pool<3>},
    {"aten::adaptive_max_pool3d_backward", Kind::kernel, adaptive_max_pool_backward},
    {"aten::fractional_max_pool2d", Kind::kernel, fractional_max_pool<2>},
    {"aten::fractional_max_pool2d_backward", Kind::kernel, adaptive_max_pool_backward},
    {"aten::fractional_max_pool3d", Kind::kernel, fractional_max_pool<3>},
    {"aten::fractional_max_pool3d_backward", Kind::kernel, adaptive_max_pool_backward},
    {"aten::max_unpool2d", Kind::kernel, max_unpool},
    {"aten::max_unpool3d", Kind::kernel, max_unpool},
};

}  // namespace

std::span<const Operator> pooling_operators() { return operators; }

}  // namespace headroom::shadow
