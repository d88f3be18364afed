// Normalisations (aten/src/ATen/native/Normalization.cpp, cuda/Normalization.cuh, cudnn/BatchNorm.cpp, layer_norm.cpp,
// cuda/layer_norm_kernel.cu, group_norm.cpp, cuda/group_norm_kernel.cu).
#include <algorithm>
#include <bit>
#include <limits>

#include "estimator/shadow/kernels/ceil_div.h"
#include "estimator/shadow/kernels/reduce.h"
#include "estimator/shadow/kernels/spatial.h"
#include "estimator/shadow/operator.h"
#include "estimator/shadow/shadow.h"

namespace headroom::shadow {
namespace {

/// Statistics of half inputs are float32 (at::toAccumulateType on CUDA).
DType accumulate_type(DType t) { return t == DType::f64 ? DType::f64 : DType::f32; }

std::int64_t channels_of(const Tensor& input) { return input->sizes[1]; }

// ---- batch norm ----------------------------------------------------------------------------------------------------

/// Blocks along the reduced dimension in batch norm's channels_last kernels (flexible_launch_configs in
/// cuda/Normalization.cuh); above 1 the blocks meet in a staging buffer.
struct LastLaunch {
  std::int64_t grid_x = 1;
  std::int64_t grid_y = 1;
};

LastLaunch channels_last_launch(std::int64_t reduced, std::int64_t channels) {
  constexpr std::int64_t tile = 32, threads = 512, per_thread = 16, max_blocks = 128, worth_it = 8;
  const auto last_pow2 = [](std::int64_t n) {
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
  };
  std::int64_t block_x = std::min(last_pow2(channels), tile);
  const std::int64_t block_y = std::min(last_pow2(ceil_div(reduced, per_thread)), threads / block_x);
  if (block_x * block_y != threads) block_x = std::min(last_pow2(channels), threads / block_y);
  const std::int64_t grid_y = std::min(ceil_div(reduced, block_y * per_thread), max_blocks);
  return {ceil_div(channels, block_x), grid_y < worth_it ? 1 : grid_y};
}

/// batch_norm_use_channels_last_kernels; a matrix counts as channels_last.
bool uses_last_kernels(const Tensor& t) {
  return (is_contiguous(*t) && t->strides[1] == 1) || (suggests_channels_last(*t) && is_channels_last(*t));
}

/// Staging of `values` statistics a channel, and the semaphores.
void last_staging(Shadow& m, const Tensor& input, std::int64_t values) {
  const std::int64_t channels = channels_of(input);
  if (channels == 0) return;
  const LastLaunch launch = channels_last_launch(input->count() / channels, channels);
  if (launch.grid_y <= 1) return;
  const auto staging = m.scratch(bytes_of(DType::f32, values * channels * launch.grid_y));
  const auto semaphores = m.scratch(bytes_of(DType::i32, launch.grid_x));
}

/// (output, mean, invstd) of the native kernels, in training and in evaluation.
Outputs native_forward(Shadow& m, const Tensor& input, bool training) {
  Tensor out = m.empty_like(input);
  const DType acc = accumulate_type(input->dtype);
  Tensor mean = m.empty({channels_of(input)}, acc);
  Tensor invstd = m.empty({channels_of(input)}, acc);
  if (training && uses_last_kernels(input)) last_staging(m, input, 4);
  return {std::move(out), std::move(mean), std::move(invstd)};
}

// aten::native_batch_norm(input, weight?, bias?, running_mean?, running_var?, training, momentum, eps)
Outputs native_batch_norm(Shadow& m, Args a) { return native_forward(m, a.tensor(0), a.boolean(5)); }
// aten::_native_batch_norm_legit.no_stats(input, weight?, bias?, training, momentum, eps)
Outputs native_batch_norm_no_stats(Shadow& m, Args a) { return native_forward(m, a.tensor(0), a.boolean(3)); }
// aten::_native_batch_norm_legit_no_training(input, weight?, bias?, running_mean, running_var, momentum, eps)
Outputs native_batch_norm_no_training(Shadow& m, Args a) { return native_forward(m, a.tensor(0), false); }

// aten::native_batch_norm_backward(grad_out, input, weight?, running_mean?, running_var?, save_mean?, save_invstd?,
//                                  train, eps, output_mask)
Outputs native_batch_norm_backward(Shadow& m, Args a) {
  const Tensor& grad = a.tensor(0);
  const Tensor& input = a.tensor(1);
  const Tensor& weight = a.tensor(2);
  const Value& mask = a[9];
  const DType parameter = weight ? weight->dtype : accumulate_type(input->dtype);
  const auto gradient = [&](std::size_t i, DType t) {
    return wanted(mask, i) ? m.empty({channels_of(input)}, t) : Tensor();
  };
  if (a.boolean(7) && uses_last_kernels(grad) && uses_last_kernels(input)) {
    const DType acc = accumulate_type(input->dtype);
    const Tensor sum_dy = m.empty({channels_of(input)}, acc);
    const Tensor sum_dy_xmu = m.empty({channels_of(input)}, acc);
    Tensor grad_weight = gradient(1, parameter), grad_bias = gradient(2, parameter);
    last_staging(m, input, 2);
    Tensor grad_input = wanted(mask, 0) ? m.empty_like(input) : Tensor();
    return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
  }
  // With frozen statistics, kernels for single gradients want 1/sqrt(running_var + eps) made for them.
  const bool single = !a.boolean(7) && !(wanted(mask, 1) && wanted(mask, 2));
  const Tensor invstd = single ? m.empty({channels_of(input)}, accumulate_type(input->dtype)) : Tensor();
  Tensor grad_input = wanted(mask, 0) ? m.empty_like(input) : Tensor();
  Tensor grad_weight = gradient(1, parameter), grad_bias = gradient(2, parameter);
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

/// Workspace of cuDNN's channels_last batch norm, read off 24 shapes in float32 and float16 on an H200 (cuDNN 9.19): a
/// block of 512 bytes and one of 4 a tile of 64 channels, and 4 bytes a tile of channels. NCHW takes none.
void use_cudnn_workspace(Shadow& m, const Tensor& input, bool forward) {
  if (!suggests_channels_last(*input) || input->count() == 0) return;
  constexpr std::int64_t tile = 64, block = 512;
  const std::int64_t rows = input->count() / channels_of(input);
  const std::int64_t channel_tiles = (channels_of(input) + tile - 1) / tile;
  const std::int64_t rows_of_a_tile = !forward ? 96 : is_half(input->dtype) ? 160 : 64;
  const std::int64_t tiles = checked_mul((rows + rows_of_a_tile - 1) / rows_of_a_tile, channel_tiles);
  const Bytes fixed = Bytes(forward ? 1072 : 1056) + Bytes(4) * channel_tiles;
  m.workspace(Bytes(forward ? block + 4 : block) * tiles + fixed);
}

// aten::cudnn_batch_norm(input, weight, bias?, running_mean?, running_var?, training, average_factor, epsilon)
// The reserve space is empty; in evaluation so are the statistics.
Outputs cudnn_batch_norm(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  Tensor out = empty_spatial(m, input->sizes, input->dtype, suggested_format(input));
  const Dims statistics{a.boolean(5) ? channels_of(input) : 0};
  Tensor mean = m.empty(statistics, a.tensor(1)->dtype);
  Tensor invstd = m.empty(statistics, a.tensor(1)->dtype);
  if (a.boolean(5)) use_cudnn_workspace(m, input, true);
  return {std::move(out), std::move(mean), std::move(invstd), m.empty({0}, DType::u8)};
}

// aten::cudnn_batch_norm_backward(input, grad_output, weight, running_mean?, running_var?, save_mean?, save_var?,
//                                 epsilon, reserveSpace): always all three gradients.
Outputs cudnn_batch_norm_backward(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const Tensor& weight = a.tensor(2);
  const MemoryFormat format = suggested_format(input);
  const Tensor grad = in_format_of(m, a.tensor(1), format);
  Tensor grad_input = empty_spatial(m, input->sizes, input->dtype, format);
  Tensor grad_weight = m.empty(weight->sizes, weight->dtype);
  Tensor grad_bias = m.empty(weight->sizes, weight->dtype);
  use_cudnn_workspace(m, input, false);
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

/// The conditions of _batch_norm_impl_index.
bool cudnn_normalises(Args a, bool training) {
  const Tensor &input = a.tensor(0), &weight = a.tensor(1);
  if (!weight || !a.tensor(2)) return false;
  if (input->dtype == DType::bf16 || weight->dtype == DType::bf16) return false;
  if (input->dtype == DType::f16 && weight->dtype != DType::f32) return false;
  const bool both = a.tensor(3) && a.tensor(4), neither = !a.tensor(3) && !a.tensor(4);
  if (!both && !(neither && training)) return false;
  constexpr std::int64_t training_limit = 880801, evaluation_limit = 65535;
  return input->dim() >= 3 && input->sizes[0] <= (training ? training_limit : evaluation_limit) &&
         input->count() < std::numeric_limits<std::int32_t>::max();
}

// aten::batch_norm(input, weight?, bias?, running_mean?, running_var?, training, momentum, eps, cudnn_enabled)
Outputs batch_norm(Shadow& m, Args a) {
  const bool training = a.boolean(5);
  if (!a.boolean(8) || !cudnn_normalises(a, training)) {
    Outputs out = m.all("aten::native_batch_norm", a[0], a[1], a[2], a[3], a[4], training, a[6], a[7]);
    return {out[0]};
  }
  const Tensor input = m.one("aten::contiguous", a[0], name_of(suggested_format(a.tensor(0))));
  Outputs out = m.all("aten::cudnn_batch_norm", input, a[1], a[2], a[3], a[4], training, a[6], a[7]);
  return {out[0]};
}

// aten::instance_norm(input, weight?, bias?, running_mean?, running_var?, use_input_stats, momentum, eps,
//                     cudnn_enabled): a batch norm over [1, N*C, ...] with everything repeated N times.
Outputs instance_norm(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const Dims batch{input->sizes[0]};
  const auto repeated = [&](std::size_t i) { return a.given(i) ? m.one("aten::repeat", a[i], batch) : Tensor(); };
  const Tensor weight = repeated(1), bias = repeated(2), mean = repeated(3), variance = repeated(4);
  Dims sizes = input->sizes;
  sizes[1] = checked_mul(sizes[0], sizes[1]);
  sizes[0] = 1;
  const Tensor flat = m.one("aten::view", m.one("aten::contiguous", a[0]), sizes);
  const Tensor out = m.one("aten::batch_norm", flat, weight, bias, mean, variance, a[5], a[6], a[7], a[8]);
  return {m.one("aten::view", out, input->sizes)};
}

// ---- layer norm, RMS norm ------------------------------------------------------------------------------------------

struct Rows {
  std::int64_t count = 0;
  std::int64_t width = 1;
  Dims statistics;  ///< [..., 1, 1]
};

Rows rows_of(const Tensor& input, const Dims& normalized_shape) {
  Rows r;
  r.width = element_count(normalized_shape);
  r.count = r.width ? input->count() / r.width : 0;
  r.statistics = input->sizes;
  std::fill(r.statistics.end() - static_cast<std::ptrdiff_t>(normalized_shape.size()), r.statistics.end(), 1);
  return r;
}

// aten::native_layer_norm(input, normalized_shape, weight?, bias?, eps) -> (output, mean, rstd)
Outputs native_layer_norm(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const Rows rows = rows_of(input, a.integers(1));
  const Tensor dense = m.contiguous(input);
  Tensor out = m.empty(input->sizes, input->dtype);
  Tensor mean = m.empty(rows.statistics, accumulate_type(input->dtype));
  Tensor rstd = m.empty(rows.statistics, accumulate_type(input->dtype));
  return {std::move(out), std::move(mean), std::move(rstd)};
}

/// Very tall inputs reduce a parameter's gradient in two steps: partial sums of 32 rows each, then their sum, which
/// takes the gradient's place (cuda_layer_norm_backward). Blocks of threads: at most 32,768, one for 32 columns of a
/// partial.
constexpr std::int64_t rows_of_a_partial = 32, columns_of_a_block = 32, most_blocks = 32768;
constexpr std::int64_t tall = 65536;

bool two_steps(const Shadow& m, const Rows& r) { return r.count > tall && r.width / 32 < m.device().sm_count / 2; }

Tensor partial(Shadow& m, const Rows& r, const Tensor& parameter) {
  const std::int64_t across = ceil_div(r.width, columns_of_a_block);
  return m.empty({std::min(ceil_div(r.count, rows_of_a_partial), most_blocks / across), r.width}, parameter->dtype);
}

Tensor summed(Shadow& m, const Tensor& partials, const Tensor& parameter) {
  const Tensor sum = reduce(m, partials, {0}, false, parameter->dtype);
  return m.alias(sum, parameter->sizes, contiguous_strides(parameter->sizes), 0);
}

// aten::native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight?, bias?, output_mask)
Outputs native_layer_norm_backward(Shadow& m, Args a) {
  const Tensor &input = a.tensor(1), &weight = a.tensor(5), &bias = a.tensor(6);
  const Rows rows = rows_of(input, a.integers(2));
  const Tensor dense = m.contiguous(input);
  Tensor grad_input = wanted(a[7], 0) ? m.empty(input->sizes, input->dtype) : Tensor();
  Tensor grad_weight = weight && wanted(a[7], 1) ? m.empty(weight->sizes, weight->dtype) : Tensor();
  Tensor grad_bias = bias && wanted(a[7], 2) ? m.empty(bias->sizes, bias->dtype) : Tensor();
  // LayerNormBackwardKernelImpl copies a gradient in another layout when all results are there.
  const Tensor grad = m.contiguous(a.tensor(0));
  if ((grad_weight || grad_bias) && two_steps(m, rows)) {
    const Tensor of_weight = grad_weight ? partial(m, rows, weight) : Tensor();
    const Tensor of_bias = grad_bias ? partial(m, rows, bias) : Tensor();
    if (grad_weight) grad_weight = summed(m, of_weight, weight);
    if (grad_bias) grad_bias = summed(m, of_bias, bias);
  }
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

// aten::layer_norm(input, normalized_shape, weight?, bias?, eps, cudnn_enable)
Outputs layer_norm(Shadow& m, Args a) {
  Outputs out = m.all("aten::native_layer_norm", a[0], a[1], a[2], a[3], a[4]);
  return {out[0]};
}

// aten::_fused_rms_norm(input, normalized_shape, weight?, eps?) -> (output, rstd)
Outputs fused_rms_norm(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const Rows rows = rows_of(input, a.integers(1));
  const Tensor dense = m.contiguous(input);
  Tensor out = m.empty(input->sizes, input->dtype);
  return {std::move(out), m.empty(rows.statistics, accumulate_type(input->dtype))};
}

// aten::_fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight?, output_mask)
Outputs fused_rms_norm_backward(Shadow& m, Args a) {
  const Tensor &input = a.tensor(1), &weight = a.tensor(4);
  const Rows rows = rows_of(input, a.integers(2));
  const Tensor dense = m.contiguous(input);
  Tensor grad_input = wanted(a[5], 0) ? m.empty(input->sizes, input->dtype) : Tensor();
  Tensor grad_weight = weight && wanted(a[5], 1) ? m.empty(weight->sizes, weight->dtype) : Tensor();
  const Tensor grad = m.contiguous(a.tensor(0));
  if (grad_weight && two_steps(m, rows)) grad_weight = summed(m, partial(m, rows, weight), weight);
  return {std::move(grad_input), std::move(grad_weight)};
}

// aten::rms_norm(input, normalized_shape, weight?, eps?). The fused kernel wants one dtype and NCHW; otherwise the
// norm is spelled out in float32 (rms_norm_composite).
Outputs rms_norm(Shadow& m, Args a) {
  const Tensor &input = a.tensor(0), &weight = a.tensor(2);
  if (!suggests_channels_last(*input) && (!weight || weight->dtype == input->dtype)) {
    Outputs out = m.all("aten::_fused_rms_norm", a[0], a[1], a[2], a[3]);
    return {out[0]};
  }
  Dims over;
  for (std::size_t i = 0; i < a.integers(1).size(); ++i) over.push_back(-1 - static_cast<std::int64_t>(i));
  const Tensor x = is_half(input->dtype) ? m.one("aten::to.dtype", a[0], DType::f32) : input;
  const Tensor rsqrt = m.one(
      "aten::rsqrt",
      m.one("aten::add_.Scalar", m.one("aten::mean.dim", m.one("aten::pow.Tensor_Scalar", x, 2), over, true), 1e-5));
  Tensor result = m.one("aten::mul.Tensor", x, rsqrt);
  if (weight) result = m.one("aten::mul.Tensor", result, weight);
  return {m.one("aten::type_as", result, input)};
}

// ---- group norm ----------------------------------------------------------------------------------------------------

// aten::native_group_norm(input, weight?, bias?, N, C, HxW, group, eps) -> (output, mean, rstd); the statistics have
// the input's dtype.
Outputs native_group_norm(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const std::int64_t n = a.integer(3), c = a.integer(4), group = a.integer(6);
  Tensor out = m.empty(input->sizes, input->dtype);
  Tensor mean = m.empty({n, group}, input->dtype);
  Tensor rstd = m.empty({n, group}, input->dtype);
  if (a.integer(5) != 1 && (a.given(1) || a.given(2))) {
    const auto scale = m.empty({n, c}, accumulate_type(input->dtype));
    const auto shift = m.empty({n, c}, accumulate_type(input->dtype));
  }
  return {std::move(out), std::move(mean), std::move(rstd)};
}

// aten::native_group_norm_backward(grad_out, input, mean, rstd, weight?, N, C, HxW, group, output_mask)
Outputs native_group_norm_backward(Shadow& m, Args a) {
  const Tensor &input = a.tensor(1), &weight = a.tensor(4);
  const std::int64_t n = a.integer(5), c = a.integer(6), group = a.integer(8);
  const DType acc = accumulate_type(input->dtype);
  Tensor grad_input = wanted(a[9], 0) ? m.empty(input->sizes, input->dtype) : Tensor();
  Tensor grad_weight = weight && wanted(a[9], 1) ? m.empty({c}, weight->dtype) : Tensor();
  Tensor grad_bias = wanted(a[9], 2) ? m.empty({c}, weight ? weight->dtype : input->dtype) : Tensor();
  const Tensor ds = m.empty({n, c}, acc);
  const Tensor db = m.empty({n, c}, acc);
  if (grad_input) {
    Tensor c1;
    const Tensor c2 = m.empty({n, group}, acc);
    const Tensor c3 = m.empty({n, group}, acc);
    if (weight) c1 = m.empty({n, c}, acc);
  }
  return {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)};
}

// aten::group_norm(input, num_groups, weight?, bias?, eps, cudnn_enabled)
Outputs group_norm(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const std::int64_t n = input->sizes[0], c = channels_of(input);
  const std::int64_t maps = checked_mul(n, c);
  const std::int64_t spatial = maps == 0 ? 0 : input->count() / maps;
  const Tensor dense = m.one("aten::contiguous", a[0]);
  Outputs out = m.all("aten::native_group_norm", dense, a[2], a[3], n, c, spatial, a[1], a[4]);
  return {out[0]};
}

constexpr Operator operators[] = {
    {"aten::batch_norm", Operator::Kind::composite, batch_norm},
    {"aten::native_batch_norm", Operator::Kind::kernel, native_batch_norm},
    {"aten::_native_batch_norm_legit", Operator::Kind::kernel, native_batch_norm},
    {"aten::_native_batch_norm_legit.no_stats", Operator::Kind::kernel, native_batch_norm_no_stats},
    {"aten::_native_batch_norm_legit_no_training", Operator::Kind::kernel, native_batch_norm_no_training},
    {"aten::native_batch_norm_backward", Operator::Kind::kernel, native_batch_norm_backward},
    {"aten::cudnn_batch_norm", Operator::Kind::kernel, cudnn_batch_norm},
    {"aten::cudnn_batch_norm_backward", Operator::Kind::kernel, cudnn_batch_norm_backward},
    {"aten::instance_norm", Operator::Kind::composite, instance_norm},
    {"aten::layer_norm", Operator::Kind::composite, layer_norm},
    {"aten::native_layer_norm", Operator::Kind::kernel, native_layer_norm},
    {"aten::native_layer_norm_backward", Operator::Kind::kernel, native_layer_norm_backward},
    {"aten::rms_norm", Operator::Kind::composite, rms_norm},
    {"aten::_fused_rms_norm", Operator::Kind::kernel, fused_rms_norm},
    {"aten::_fused_rms_norm_backward", Operator::Kind::kernel, fused_rms_norm_backward},
    {"aten::group_norm", Operator::Kind::composite, group_norm},
    {"aten::native_group_norm", Operator::Kind::kernel, native_group_norm},
    {"aten::native_group_norm_backward", Operator::Kind::kernel, native_group_norm_backward},
};

}  // namespace

std::span<const Operator> normalization_operators() { return operators; }

}  // namespace headroom::shadow
