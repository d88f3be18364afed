// Resampling: interpolation, grids, pads, pixel shuffles, sliding windows (aten/src/ATen/native/UpSample*.cpp,
// cuda/UpSample*.cu, GridSampler.cpp, PadNd.cpp, cuda/ReflectionPad.cu, cuda/ReplicationPadding.cu, PixelShuffle.cpp,
// cuda/Im2Col.cu, cuda/Col2Im.cu).
#include <algorithm>

#include "estimator/shadow/kernels/spatial.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operator.h"
#include "estimator/shadow/shadow.h"

namespace headroom::shadow {
namespace {

// ---- interpolation -------------------------------------------------------------------------------------------------

// aten::upsample_*{1,2,3}d(self, output_size, ...): the output in the input's format.
Outputs upsample(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const MemoryFormat format = suggested_format(input);
  Tensor out = empty_spatial(m, with_last(input->sizes, a.integers(1)), input->dtype, format);
  in_format_of(m, input, format);
  return {std::move(out)};
}

// aten::upsample_*_backward(grad_output, output_size, input_size, ...)
Outputs upsample_backward(Shadow& m, Args a) {
  const Tensor& grad = a.tensor(0);
  const MemoryFormat format = suggested_format(grad);
  Tensor out = empty_spatial(m, a.integers(2), grad->dtype, format);
  in_format_of(m, grad, format);
  return {std::move(out)};
}

/// A `.vec` overload: the sizes are given, or follow from factors. `aligned`: the operator takes align_corners.
struct Vector {
  Value size;
  Value factors;  ///< None when sizes were given
};

Vector output_of(Args a, std::size_t factors_at) {
  if (a.given(1)) return {a[1], Value()};
  const Tensor& input = a.tensor(0);
  const ValueList& factors = a.list(factors_at);
  Dims out;
  for (std::size_t i = 0; i < factors.size(); ++i)
    out.push_back(static_cast<std::int64_t>(static_cast<double>(input->sizes[i + 2]) * factors[i].real()));
  return {out, a[factors_at]};
}

/// (input, output_size?, scale_factors?) of the nearest ones; (input, output_size?, align_corners, scale_factors?) of
/// the others.
Outputs interpolate(Shadow& m, Args a, std::string_view op, bool aligned) {
  const Vector v = output_of(a, aligned ? 3 : 2);
  boost::container::small_vector<Value, 6> args{a[0], v.size};
  if (aligned) args.push_back(a[2]);
  for (std::size_t i = 0; i < v.size.integers().size(); ++i)
    args.push_back(v.factors.none() ? Value() : v.factors.list()[i]);
  return m.dispatch(op, std::span<const Value>(args.data(), args.size()));
}

Outputs nearest1d(Shadow& m, Args a) { return interpolate(m, a, "aten::upsample_nearest1d", false); }
Outputs nearest2d(Shadow& m, Args a) { return interpolate(m, a, "aten::upsample_nearest2d", false); }
Outputs nearest3d(Shadow& m, Args a) { return interpolate(m, a, "aten::upsample_nearest3d", false); }
Outputs nearest_exact1d(Shadow& m, Args a) { return interpolate(m, a, "aten::_upsample_nearest_exact1d", false); }
Outputs nearest_exact2d(Shadow& m, Args a) { return interpolate(m, a, "aten::_upsample_nearest_exact2d", false); }
Outputs nearest_exact3d(Shadow& m, Args a) { return interpolate(m, a, "aten::_upsample_nearest_exact3d", false); }
Outputs linear1d(Shadow& m, Args a) { return interpolate(m, a, "aten::upsample_linear1d", true); }
Outputs bilinear2d(Shadow& m, Args a) { return interpolate(m, a, "aten::upsample_bilinear2d", true); }
Outputs bicubic2d(Shadow& m, Args a) { return interpolate(m, a, "aten::upsample_bicubic2d", true); }
Outputs trilinear3d(Shadow& m, Args a) { return interpolate(m, a, "aten::upsample_trilinear3d", true); }
Outputs bilinear2d_aa(Shadow& m, Args a) { return interpolate(m, a, "aten::_upsample_bilinear2d_aa", true); }
Outputs bicubic2d_aa(Shadow& m, Args a) { return interpolate(m, a, "aten::_upsample_bicubic2d_aa", true); }

// ---- grids ---------------------------------------------------------------------------------------------------------

// aten::grid_sampler_{2,3}d(input, grid, ...); grid: [N, spatial..., dims]
Outputs grid_sample(Shadow& m, Args a) {
  const Tensor &input = a.tensor(0), &grid = a.tensor(1);
  Dims sizes{input->sizes[0], input->sizes[1]};
  sizes.insert(sizes.end(), grid->sizes.begin() + 1, grid->sizes.end() - 1);
  return {m.empty(sizes, input->dtype)};
}

// aten::grid_sampler_{2,3}d_backward(grad_output, input, grid, interpolation_mode, padding_mode, align_corners,
//                                    output_mask): the grid's gradient comes always.
Outputs grid_sample_backward(Shadow& m, Args a) {
  const Tensor &input = a.tensor(1), &grid = a.tensor(2);
  Tensor grad_input = wanted(a[6], 0) ? m.empty(input->sizes, input->dtype) : Tensor();
  return {std::move(grad_input), m.empty(grid->sizes, grid->dtype)};
}

// aten::cudnn_grid_sampler(self, grid)
Outputs cudnn_grid_sample(Shadow& m, Args a) {
  const Tensor input = m.contiguous(a.tensor(0)), grid = m.contiguous(a.tensor(1));
  return grid_sample(m, a);
}

// aten::cudnn_grid_sampler_backward(self, grid, grad_output)
Outputs cudnn_grid_sample_backward(Shadow& m, Args a) {
  const Tensor input = m.contiguous(a.tensor(0)), grid = m.contiguous(a.tensor(1)), grad = m.contiguous(a.tensor(2));
  Tensor grad_input = m.empty(input->sizes, input->dtype);
  return {std::move(grad_input), m.empty(grid->sizes, grid->dtype)};
}

// aten::grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners): cuDNN has the bilinear one with
// zero padding and aligned corners.
Outputs grid_sampler(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const bool planar = input->dim() == 4;
  if (planar && a.integer(2) == 0 && a.integer(3) == 0 && a.boolean(4) && input->dtype != DType::bf16 &&
      input->sizes[1] <= 1024)
    return m.all("aten::cudnn_grid_sampler", a[0], a[1]);
  return m.dispatch(planar ? "aten::grid_sampler_2d" : "aten::grid_sampler_3d", a.values());
}

/// The base grid of affine_grid: coordinates of every pixel and a one, filled axis by axis from linspaces, which
/// without aligned corners are scaled in two steps.
Tensor base_grid(Shadow& m, const Dims& size, DType dtype, bool align_corners) {
  const auto axes = static_cast<std::int64_t>(size.size()) - 2;
  Dims sizes{size[0]};
  sizes.insert(sizes.end(), size.begin() + 2, size.end());
  sizes.push_back(axes + 1);
  Tensor grid = m.empty(sizes, dtype);
  for (std::size_t i = size.size(); i-- > 2;) {
    Tensor line = m.empty({size[i]}, dtype);
    if (align_corners) continue;
    Tensor scaled = m.empty({size[i]}, dtype);
    const Tensor divided = m.empty({size[i]}, dtype);
    line.reset();
    scaled.reset();
  }
  return grid;
}

// aten::affine_grid_generator(theta, size, align_corners): base grid times theta
Outputs affine_grid(Shadow& m, Args a) {
  const Dims& size = a.integers(1);
  const Tensor grid = base_grid(m, size, a.tensor(0)->dtype, a.boolean(2));
  Dims sizes = grid->sizes;
  sizes.back() = static_cast<std::int64_t>(size.size()) - 2;
  m.use_cublas();
  return {m.empty(sizes, grid->dtype)};
}

// aten::affine_grid_generator_backward(grad, size, align_corners)
Outputs affine_grid_backward(Shadow& m, Args a) {
  const Dims& size = a.integers(1);
  const std::int64_t axes = static_cast<std::int64_t>(size.size()) - 2, n = size[0];
  const Tensor& grad = a.tensor(0);
  const Tensor grid = base_grid(m, size, grad->dtype, a.boolean(2));
  const Tensor rows = m.one("aten::view", grid, Dims{n, -1, axes + 1});
  const Tensor product =
      m.one("aten::bmm", m.one("aten::transpose.int", rows, 1, 2), m.one("aten::reshape", grad, Dims{n, -1, axes}));
  return {m.one("aten::transpose.int", product, 1, 2)};
}

// ---- pads ----------------------------------------------------------------------------------------------------------

/// `pad` lists (before, after) of the last dimension first.
Dims padded_sizes(const Dims& sizes, const Dims& pad) {
  Dims out = sizes;
  for (std::size_t i = 0; i < pad.size() / 2; ++i)
    out[out.size() - 1 - i] = checked_add(out[out.size() - 1 - i], checked_add(pad[2 * i], pad[2 * i + 1]));
  return out;
}

// aten::constant_pad_nd(self, pad, value). Pads that only cut are a clone of the view.
Outputs constant_pad_nd(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  const Dims& pad = a.integers(1);
  const Dims sizes = padded_sizes(input->sizes, pad);
  if (input->host) return {m.host_tensor(sizes, input->dtype)};
  if (std::all_of(pad.begin(), pad.end(), [](std::int64_t p) { return p <= 0; }))
    return {m.empty_like(m.alias(input, sizes, input->strides, input->offset))};
  return {empty_spatial(m, sizes, input->dtype, suggested_format(input))};
}

// aten::{reflection,replication}_pad{1,2,3}d(self, padding)
Outputs mirror_pad(Shadow& m, Args a) {
  const Tensor& input = a.tensor(0);
  Tensor out = m.empty(padded_sizes(input->sizes, a.integers(1)), input->dtype);
  m.contiguous(input);
  return {std::move(out)};
}

// aten::{reflection,replication}_pad{1,2,3}d_backward(grad_output, self, padding)
Outputs mirror_pad_backward(Shadow& m, Args a) {
  Tensor out = m.empty(a.tensor(1)->sizes, a.tensor(1)->dtype);
  m.contiguous(a.tensor(0));
  return {std::move(out)};
}

// aten::_pad_circular(self, pad): PyTorch fills the output by copies between its slices. Forwards that takes the output
// alone, as a replicating pad does; backwards each of those copies makes up to three tensors of the output's size,
// which are not followed here.
Outputs pad_circular(Shadow& m, Args a) {
  constexpr std::string_view same_sizes[] = {"aten::replication_pad1d", "aten::replication_pad2d",
                                             "aten::replication_pad3d"};
  const Tensor& input = a.tensor(0);
  if (m.grad_enabled() && needs_grad(input))
    m.note_generic("aten::_pad_circular",
                   bytes_of(input->dtype, element_count(padded_sizes(input->sizes, a.integers(1)))) * 3);
  return m.all(same_sizes[std::clamp<std::size_t>(a.integers(1).size() / 2, 1, 3) - 1], a[0], a[1]);
}

// aten::pad(self, pad, mode, value?)
Outputs pad(Shadow& m, Args a) {
  const std::string_view mode = a.text(2);
  if (mode == "constant") return m.all("aten::constant_pad_nd", a[0], a[1], a.given(3) ? a[3] : Value(0));
  if (mode == "circular") return m.all("aten::_pad_circular", a[0], a[1]);
  constexpr std::string_view reflection[] = {"aten::reflection_pad1d", "aten::reflection_pad2d",
                                             "aten::reflection_pad3d"};
  constexpr std::string_view replication[] = {"aten::replication_pad1d", "aten::replication_pad2d",
                                              "aten::replication_pad3d"};
  const std::size_t dims = std::clamp<std::size_t>(a.integers(1).size() / 2, 1, 3);
  return m.all((mode == "reflect" ? reflection : replication)[dims - 1], a[0], a[1]);
}

// ---- pixel shuffles, channel shuffle -------------------------------------------------------------------------------

/// A permuted reshape of the last three dimensions [C, H, W], made dense.
Outputs rearranged(Shadow& m, const Tensor& t, const Dims& split, const Dims& order, const Dims& merged) {
  const Dims batch(t->sizes.begin(), t->sizes.end() - 3);
  const auto after_batch = [&](const Dims& last) {
    Dims all = batch;
    all.insert(all.end(), last.begin(), last.end());
    return all;
  };
  Dims permutation;
  for (std::size_t i = 0; i < batch.size(); ++i) permutation.push_back(static_cast<std::int64_t>(i));
  for (const std::int64_t i : order) permutation.push_back(i + static_cast<std::int64_t>(batch.size()));
  return {reshaped(m, permuted(m, reshaped(m, t, after_batch(split)), permutation), after_batch(merged))};
}

// aten::pixel_shuffle(self, upscale_factor): [*, C*r*r, H, W] -> [*, C, H*r, W*r]
Outputs pixel_shuffle(Shadow& m, Args a) {
  const Tensor& t = a.tensor(0);
  const std::int64_t r = a.integer(1);
  const std::size_t n = t->dim();
  const std::int64_t c = t->sizes[n - 3] / (r * r), h = t->sizes[n - 2], w = t->sizes[n - 1];
  return rearranged(m, t, {c, r, r, h, w}, {0, 3, 1, 4, 2}, {c, h * r, w * r});
}

// aten::pixel_unshuffle(self, downscale_factor): [*, C, H*r, W*r] -> [*, C*r*r, H, W]
Outputs pixel_unshuffle(Shadow& m, Args a) {
  const Tensor& t = a.tensor(0);
  const std::int64_t r = a.integer(1);
  const std::size_t n = t->dim();
  const std::int64_t c = t->sizes[n - 3], h = t->sizes[n - 2] / r, w = t->sizes[n - 1] / r;
  return rearranged(m, t, {c, h, r, w, r}, {0, 2, 4, 1, 3}, {c * r * r, h, w});
}

// aten::channel_shuffle(self, groups): [N, g*c, *] with the two channel factors exchanged
Outputs channel_shuffle(Shadow& m, Args a) {
  const Tensor& t = a.tensor(0);
  const std::int64_t groups = a.integer(1);
  const Tensor split = reshaped(m, t, {t->sizes[0], groups, t->sizes[1] / groups, -1});
  return {reshaped(m, permuted(m, split, {0, 2, 1, 3}), t->sizes)};
}

using Kind = Operator::Kind;
constexpr Operator operators[] = {
    {"aten::upsample_nearest1d", Kind::kernel, upsample},
    {"aten::upsample_nearest2d", Kind::kernel, upsample},
    {"aten::upsample_nearest3d", Kind::kernel, upsample},
    {"aten::_upsample_nearest_exact1d", Kind::kernel, upsample},
    {"aten::_upsample_nearest_exact2d", Kind::kernel, upsample},
    {"aten::_upsample_nearest_exact3d", Kind::kernel, upsample},
    {"aten::upsample_linear1d", Kind::kernel, upsample},
    {"aten::upsample_bilinear2d", Kind::kernel, upsample},
    {"aten::upsample_bicubic2d", Kind::kernel, upsample},
    {"aten::upsample_trilinear3d", Kind::kernel, upsample},
    {"aten::_upsample_bilinear2d_aa", Kind::kernel, upsample},
    {"aten::_upsample_bicubic2d_aa", Kind::kernel, upsample},
    {"aten::upsample_nearest1d_backward", Kind::kernel, upsample_backward},
    {"aten::upsample_nearest2d_backward", Kind::kernel, upsample_backward},
    {"aten::upsample_nearest3d_backward", Kind::kernel, upsample_backward},
    {"aten::_upsample_nearest_exact1d_backward", Kind::kernel, upsample_backward},
    {"aten::_upsample_nearest_exact2d_backward", Kind::kernel, upsample_backward},
    {"aten::_upsample_nearest_exact3d_backward", Kind::kernel, upsample_backward},
    {"aten::upsample_linear1d_backward", Kind::kernel, upsample_backward},
    {"aten::upsample_bilinear2d_backward", Kind::kernel, upsample_backward},
    {"aten::upsample_bicubic2d_backward", Kind::kernel, upsample_backward},
    {"aten::upsample_trilinear3d_backward", Kind::kernel, upsample_backward},
    {"aten::_upsample_bilinear2d_aa_backward", Kind::kernel, upsample_backward},
    {"aten::_upsample_bicubic2d_aa_backward", Kind::kernel, upsample_backward},
    {"aten::upsample_nearest1d.vec", Kind::composite, nearest1d},
    {"aten::upsample_nearest2d.vec", Kind::composite, nearest2d},
    {"aten::upsample_nearest3d.vec", Kind::composite, nearest3d},
    {"aten::_upsample_nearest_exact1d.vec", Kind::composite, nearest_exact1d},
    {"aten::_upsample_nearest_exact2d.vec", Kind::composite, nearest_exact2d},
    {"aten::_upsample_nearest_exact3d.vec", Kind::composite, nearest_exact3d},
    {"aten::upsample_linear1d.vec", Kind::composite, linear1d},
    {"aten::upsample_bilinear2d.vec", Kind::composite, bilinear2d},
    {"aten::upsample_bicubic2d.vec", Kind::composite, bicubic2d},
    {"aten::upsample_trilinear3d.vec", Kind::composite, trilinear3d},
    {"aten::_upsample_bilinear2d_aa.vec", Kind::composite, bilinear2d_aa},
    {"aten::_upsample_bicubic2d_aa.vec", Kind::composite, bicubic2d_aa},
    {"aten::grid_sampler", Kind::composite, grid_sampler},
    {"aten::grid_sampler_2d", Kind::kernel, grid_sample},
    {"aten::grid_sampler_3d", Kind::kernel, grid_sample},
    {"aten::grid_sampler_2d_backward", Kind::kernel, grid_sample_backward},
    {"aten::grid_sampler_3d_backward", Kind::kernel, grid_sample_backward},
    {"aten::cudnn_grid_sampler", Kind::kernel, cudnn_grid_sample},
    {"aten::cudnn_grid_sampler_backward", Kind::kernel, cudnn_grid_sample_backward},
    {"aten::affine_grid_generator", Kind::kernel, affine_grid},
    {"aten::affine_grid_generator_backward", Kind::composite, affine_grid_backward},
    {"aten::pad", Kind::composite, pad},
    {"aten::_pad_circular", Kind::composite, pad_circular},
    {"aten::constant_pad_nd", Kind::kernel, constant_pad_nd},
    {"aten::reflection_pad1d", Kind::kernel, mirror_pad},
    {"aten::reflection_pad2d", Kind::kernel, mirror_pad},
    {"aten::reflection_pad3d", Kind::kernel, mirror_pad},
    {"aten::replication_pad1d", Kind::kernel, mirror_pad},
    {"aten::replication_pad2d", Kind::kernel, mirror_pad},
    {"aten::replication_pad3d", Kind::kernel, mirror_pad},
    {"aten::reflection_pad1d_backward", Kind::kernel, mirror_pad_backward},
    {"aten::reflection_pad2d_backward", Kind::kernel, mirror_pad_backward},
    {"aten::reflection_pad3d_backward", Kind::kernel, mirror_pad_backward},
    {"aten::replication_pad1d_backward", Kind::kernel, mirror_pad_backward},
    {"aten::replication_pad2d_backward", Kind::kernel, mirror_pad_backward},
    {"aten::replication_pad3d_backward", Kind::kernel, mirror_pad_backward},
    {"aten::pixel_shuffle", Kind::kernel, pixel_shuffle},
    {"aten::pixel_unshuffle", Kind::kernel, pixel_unshuffle},
    {"aten::channel_shuffle", Kind::kernel, channel_shuffle},
};

}  // namespace

std::span<const Operator> resampling_operators() { return operators; }

}  // namespace headroom::shadow
