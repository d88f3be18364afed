// Convolutions (aten/src/ATen/native/Convolution.cpp, cudnn/ConvShared.cpp, cuda/DepthwiseConv{2,3}d.cu).
//
// On CUDA a convolution runs in cuDNN, but for depthwise ones that have kernels of PyTorch's own. cuDNN works in
// channels_last as soon as input or weight lies so; the other operands are then copied. One-dimensional convolutions
// are two-dimensional ones of height 1.
#include <algorithm>

#include "estimator/shadow/kernels/conv_workspace.h"
#include "estimator/shadow/kernels/reduce.h"
#include "estimator/shadow/kernels/spatial.h"
#include "estimator/shadow/operator.h"
#include "estimator/shadow/shadow.h"

namespace headroom::shadow {
namespace {

struct Parameters {
  Dims stride, padding, dilation, output_padding;
  bool transposed = false;
  std::int64_t groups = 1;
};

/// [N, C, L] as [N, C, 1, L] (view4d); others unchanged.
Tensor as_planar(Shadow& m, const Tensor& t) {
  if (t->dim() != 3) return t;
  Dims sizes = t->sizes, strides = t->strides;
  sizes.insert(sizes.begin() + 2, 1);
  strides.insert(strides.begin() + 2, t->sizes[2] * t->strides[2]);
  return m.alias(t, sizes, strides, t->offset);
}

/// The reverse: the result of a convolution that was planar only for the kernel.
Tensor as_linear(Shadow& m, Tensor t) {
  if (!t) return t;
  Dims sizes = t->sizes, strides = t->strides;
  sizes.erase(sizes.begin() + 2);
  strides.erase(strides.begin() + 2);
  return m.alias(t, sizes, strides, t->offset);
}

Parameters parameters(Args a, std::size_t first, std::size_t dims) {
  Parameters p;
  p.stride = spread(a[first], dims);
  p.padding = spread(a[first + 1], dims);
  p.dilation = spread(a[first + 2], dims);
  p.transposed = a.boolean(first + 3);
  p.output_padding = spread(a[first + 4], dims);
  p.groups = a.integer(first + 5);
  if (dims == 1) {
    p.stride.insert(p.stride.begin(), 1);
    p.padding.insert(p.padding.begin(), 0);
    p.dilation.insert(p.dilation.begin(), 1);
    p.output_padding.insert(p.output_padding.begin(), 0);
  }
  return p;
}

Dims output_sizes(const TensorImpl& input, const TensorImpl& weight, const Parameters& p) {
  Dims out{input.sizes[0], p.transposed ? weight.sizes[1] * p.groups : weight.sizes[0]};
  for (std::size_t i = 0; i + 2 < input.dim(); ++i) {
    const std::int64_t reach = p.dilation[i] * (weight.sizes[i + 2] - 1);
    out.push_back(p.transposed
                      ? (input.sizes[i + 2] - 1) * p.stride[i] - 2 * p.padding[i] + reach + 1 + p.output_padding[i]
                      : (input.sizes[i + 2] + 2 * p.padding[i] - reach - 1) / p.stride[i] + 1);
  }
  return out;
}

/// cudnn_conv_suggest_memory_format.
MemoryFormat cudnn_format(const Tensor& a, const Tensor& b) {
  if (a->dtype == DType::f64 || b->dtype == DType::f64) return MemoryFormat::contiguous;
  const bool last = suggests_channels_last(*a) || suggests_channels_last(*b);
  return last ? MemoryFormat::channels_last : MemoryFormat::contiguous;
}

/// ConvParams::use_cudnn_depthwise for float16: the cases in which cuDNN was found to be faster.
bool cudnn_depthwise_pays(const TensorImpl& input, const TensorImpl& weight, const Parameters& p) {
  if (input.dtype != DType::f16 || input.dim() != 4 || input.sizes[1] < 32) return false;
  if (std::any_of(p.dilation.begin(), p.dilation.end(), [](std::int64_t d) { return d != 1; })) return false;
  const std::int64_t stride = p.stride[1], width = input.sizes[3], channels = input.sizes[1], batch = input.sizes[0];
  if (p.stride[0] != stride && input.sizes[2] != 1) return false;
  if (input.sizes[2] == 1 && stride == 1) return true;
  const std::int64_t filter = weight.sizes[3];
  if (weight.sizes[2] != filter || (filter != 1 && filter != 3 && filter != 5) || width < 7) return false;
  if (stride == 1) return true;
  if (stride != 2) return false;
  if (batch == 1) return filter != 1 || width <= 28;
  if (filter == 1) return batch <= 16 && channels >= 128 && width <= 7;
  return channels >= 512 || (channels >= 256 && width >= 28);
}

/// Whether PyTorch's own depthwise kernels run instead of cuDNN (ConvParams::is_depthwise, use_cudnn_depthwise).
bool native_depthwise(const Tensor& input, const Tensor& weight, const Parameters& p) {
  if (p.transposed || p.groups <= 1 || input->sizes[1] != p.groups || weight->sizes[0] % p.groups != 0) return false;
  if (cudnn_format(input, weight) == MemoryFormat::channels_last) return false;
  return !cudnn_depthwise_pays(*input, *weight, p);
}

/// The workspace lookup of one call; only two-dimensional shapes can have been measured.
class Workspaces {
 public:
  Workspaces(const Tensor& input, const Tensor& weight, const Dims& output, MemoryFormat format, const Parameters& p) {
    shape_.transposed = p.transposed;
    shape_.channels_last = format == MemoryFormat::channels_last;
    shape_.dtype = input->dtype;
    shape_.batch = input->sizes[0];
    shape_.in_channels = input->sizes[1];
    shape_.out_channels = output[1];
    shape_.groups = p.groups;
    shape_.kernel = Dims(weight->sizes.begin() + 2, weight->sizes.end());
    shape_.stride = p.stride;
    shape_.padding = p.padding;
    shape_.dilation = p.dilation;
    shape_.input = Dims(input->sizes.begin() + 2, input->sizes.end());
    shape_.output = Dims(output.begin() + 2, output.end());
  }
  void use(Shadow& m, ConvCall call) const { use_conv_workspace(m, shape_, call); }

 private:
  ConvShape shape_;
};

// aten::convolution(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups)
Outputs convolution(Shadow& m, Args a) {
  const std::size_t dims = a.tensor(1)->dim() - 2;
  const Parameters p = parameters(a, 3, dims);
  const Tensor weight = as_planar(m, a.tensor(1));
  const Tensor input = as_planar(m, a.tensor(0));
  const Dims sizes = output_sizes(*input, *weight, p);
  Tensor out;
  if (native_depthwise(input, weight, p)) {
    const Tensor dense = m.contiguous(input);
    out = m.empty(sizes, input->dtype);
    m.contiguous(weight);
  } else {
    const MemoryFormat format = cudnn_format(input, weight);
    const Tensor dense = in_format_of(m, input, format);
    out = empty_spatial(m, sizes, input->dtype, format);
    if (out->count() == 0) return {dims == 1 ? as_linear(m, out) : out};
    const Tensor filter = in_format_of(m, weight, format);
    m.recorder().uses_cudnn();
    Workspaces(input, weight, sizes, format, p).use(m, ConvCall::forward);
  }
  return {dims == 1 ? as_linear(m, out) : out};  // the bias is added in place
}

/// cudnn_convolution_backward and cudnn_convolution_transpose_backward; gradients of input and weight.
std::pair<Tensor, Tensor> cudnn_backward(Shadow& m, const Tensor& grad_output, const Tensor& input,
                                         const Tensor& weight, const Parameters& p, bool of_input, bool of_weight) {
  const MemoryFormat format = cudnn_format(input, weight);
  const Tensor x = of_weight ? in_format_of(m, input, format) : input;
  // The transposed form calls contiguous(), the other to(), which is content with the right suggested format.
  const bool as_it_is = !p.transposed && suggested_format(grad_output) == suggested_format(x);
  const Tensor grad = as_it_is ? grad_output : in_format_of(m, grad_output, suggested_format(x));
  const Workspaces workspaces(input, weight, grad_output->sizes, format, p);
  std::pair<Tensor, Tensor> out;
  if (of_input) {
    const MemoryFormat f = cudnn_format(grad, weight);
    out.first = empty_spatial(m, input->sizes, grad->dtype, f);
    const Tensor filter = in_format_of(m, weight, f);
    const Tensor g = in_format_of(m, grad, f);
    workspaces.use(m, ConvCall::input_gradient);
  }
  if (of_weight) {
    const MemoryFormat f = cudnn_format(x, grad);
    const Tensor g = in_format_of(m, grad, f);
    const Tensor dense = in_format_of(m, x, f);
    out.second = empty_spatial(m, weight->sizes, grad->dtype, f);
    workspaces.use(m, ConvCall::weight_gradient);
  }
  return out;
}

/// conv_depthwise2d_backward_cuda: the weight's gradient comes first.
std::pair<Tensor, Tensor> depthwise_backward(Shadow& m, const Tensor& grad_output, const Tensor& input,
                                             const Tensor& weight, bool of_input, bool of_weight) {
  std::pair<Tensor, Tensor> out;
  const Tensor grad = m.contiguous(grad_output);
  if (of_weight) {
    out.second = m.empty(weight->sizes, weight->dtype);
    m.contiguous(input);
  }
  if (of_input) {
    out.first = m.empty(input->sizes, input->dtype);
    m.contiguous(weight);
  }
  return out;
}

// aten::convolution_backward(grad_output, input, weight, bias_sizes?, stride, padding, dilation, transposed,
//                            output_padding, groups, output_mask)
Outputs convolution_backward(Shadow& m, Args a) {
  const std::size_t dims = a.tensor(2)->dim() - 2;
  const Parameters p = parameters(a, 4, dims);
  const Tensor grad = as_planar(m, a.tensor(0));
  const Tensor input = as_planar(m, a.tensor(1));
  const Tensor weight = as_planar(m, a.tensor(2));
  const bool of_input = wanted(a[10], 0), of_weight = wanted(a[10], 1);
  auto [grad_input, grad_weight] = native_depthwise(input, weight, p)
                                       ? depthwise_backward(m, grad, input, weight, of_input, of_weight)
                                       : cudnn_backward(m, grad, input, weight, p, of_input, of_weight);
  Tensor grad_bias;
  if (wanted(a[10], 2)) {
    Dims over{0};
    for (std::size_t i = 2; i < grad->dim(); ++i) over.push_back(static_cast<std::int64_t>(i));
    grad_bias = reduce(m, grad, over, false, grad->dtype);
  }
  if (dims == 1) {
    grad_input = as_linear(m, std::move(grad_input));
    grad_weight = as_linear(m, std::move(grad_weight));
  }
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

/// A convolution of an input with or without batch dimension.
Outputs batched(Shadow& m, Args a, bool transposed, const Value& padding, const Value& dilation,
                const Value& output_padding, const Value& groups) {
  const bool unbatched = a.tensor(0)->dim() + 1 == a.tensor(1)->dim();
  Tensor input = unbatched ? m.one("aten::unsqueeze", a[0], 0) : a.tensor(0);
  Tensor out = m.one("aten::convolution", std::move(input), a[1], a[2], a[3], padding, dilation, transposed,
                     output_padding, groups);
  if (unbatched) out = m.one("aten::squeeze.dim", std::move(out), 0);
  return {std::move(out)};
}

Value zeros_for(Args a) { return Dims(a.tensor(1)->dim() - 2, 0); }

// aten::conv{1,2,3}d(input, weight, bias?, stride, padding, dilation, groups)
Outputs conv(Shadow& m, Args a) { return batched(m, a, false, a[4], a[5], zeros_for(a), a[6]); }

// aten::conv_transpose{1,2d.input,3d.input}(input, weight, bias?, stride, padding, output_padding, groups, dilation)
Outputs conv_transpose(Shadow& m, Args a) { return batched(m, a, true, a[4], a[7], a[5], a[6]); }

// aten::_convolution_mode(input, weight, bias?, stride, padding, dilation, groups); padding is "same" or "valid".
// An odd sum of paddings is asymmetric: the longer side is padded by a constant_pad_nd before.
Outputs convolution_mode(Shadow& m, Args a) {
  const std::size_t dims = a.tensor(1)->dim() - 2;
  if (a.text(4) != "same") return batched(m, a, false, zeros_for(a), a[5], zeros_for(a), a[6]);
  const Dims dilation = spread(a[5], dims);
  Dims padding(dims, 0), extra(2 * dims, 0);
  bool asymmetric = false;
  for (std::size_t i = 0; i < dims; ++i) {
    const std::int64_t total = dilation[i] * (a.tensor(1)->sizes[i + 2] - 1);
    padding[i] = total / 2;
    extra[2 * (dims - 1 - i) + 1] = total % 2;
    asymmetric |= total % 2 != 0;
  }
  if (!asymmetric) return batched(m, a, false, padding, a[5], zeros_for(a), a[6]);
  const Tensor padded = m.one("aten::constant_pad_nd", a[0], extra, 0);
  const std::array<Value, 7> args{padded, a[1], a[2], a[3], padding, a[5], a[6]};
  return batched(m, Args(args), false, padding, a[5], zeros_for(a), a[6]);
}

// aten::conv{1,2,3}d.padding: `padding` as text.
Outputs conv_mode(Shadow& m, Args a) { return m.dispatch("aten::_convolution_mode", a.values()); }

constexpr Operator operators[] = {
    {"aten::conv1d", Operator::Kind::composite, conv},
    {"aten::conv2d", Operator::Kind::composite, conv},
    {"aten::conv3d", Operator::Kind::composite, conv},
    {"aten::conv1d.padding", Operator::Kind::composite, conv_mode},
    {"aten::conv2d.padding", Operator::Kind::composite, conv_mode},
    {"aten::conv3d.padding", Operator::Kind::composite, conv_mode},
    {"aten::_convolution_mode", Operator::Kind::composite, convolution_mode},
    {"aten::conv_transpose1d", Operator::Kind::composite, conv_transpose},
    {"aten::conv_transpose2d.input", Operator::Kind::composite, conv_transpose},
    {"aten::conv_transpose3d.input", Operator::Kind::composite, conv_transpose},
    {"aten::convolution", Operator::Kind::kernel, convolution},
    {"aten::_convolution", Operator::Kind::kernel, convolution},
    {"aten::convolution_backward", Operator::Kind::kernel, convolution_backward},
};

}  // namespace

std::span<const Operator> convolution_operators() { return operators; }

}  // namespace headroom::shadow
