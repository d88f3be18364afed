// Scaled dot product attention (aten/src/ATen/native/transformers/attention.cpp, cuda/sdp_utils.cpp, cuda/attention.cu,
// cuda/attention_backward.cu, cuda/flash_attn/flash_api.cpp, cudnn/MHA.cpp). 270 probes on an H200 are reproduced.
//
// Symbols: B batch, H heads, S queries, K keys, D size of a head.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/ceil_div.h"
#include "estimator/shadow/kernels/reduce.h"
#include "estimator/shadow/kernels/spatial.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operator.h"
#include "estimator/shadow/shadow.h"

namespace headroom::shadow {
namespace {

std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

// ---- the choice of the backend (sdp_utils.cpp) ---------------------------------------------------------------------

struct Problem {
  const Tensor &query, &key, &value, &mask;
  double dropout = 0;
  bool causal = false;
  bool grouped = false;  ///< enable_gqa
  bool training = false;

  std::int64_t head_size() const { return query->sizes.back(); }
  bool same_heads() const { return query->sizes[1] == key->sizes[1] && query->sizes[1] == value->sizes[1]; }
  bool heads_divide() const {
    const std::int64_t h = query->sizes[1], k = key->sizes[1], v = value->sizes[1];
    return k > 0 && v > 0 && h % k == 0 && h % v == 0;
  }
  bool half() const { return is_half(query->dtype); }
};

/// What every fused backend asks for: four dimensions, one dtype, dense last dimensions, something to attend to.
bool fusible(const Problem& p) {
  const auto dense_last = [](const Tensor& t) { return t->strides.back() == 1 || t->sizes.back() == 1; };
  for (const Tensor* t : {&p.query, &p.key, &p.value})
    if ((*t)->dim() != 4 || (*t)->dtype != p.query->dtype || !dense_last(*t)) return false;
  if (p.mask && p.mask->strides.back() != 1) return false;
  return p.query->sizes[0] == p.key->sizes[0] && p.query->sizes[2] > 0 && p.key->sizes[2] > 0 &&
         (p.same_heads() || (p.grouped && p.heads_divide()));
}

bool cudnn_can(const DeviceFacts& device, const Problem& p) {
  constexpr std::int64_t limit = 128, hopper_limit = 256;
  const bool hopper = device.compute_major == 9 && device.compute_minor == 0;
  const std::int64_t d = std::max(p.head_size(), p.value->sizes.back());
  return device.compute_major >= 8 && p.half() && !needs_grad(p.mask) && d <= (hopper ? hopper_limit : limit) &&
         p.head_size() % 8 == 0 && p.value->sizes.back() % 8 == 0 && p.key->sizes[2] > 1 &&
         (p.dropout == 0 || p.query->sizes[2] > 1);
}

bool flash_can(const DeviceFacts& device, const Problem& p) {
  const std::int64_t d = p.head_size();
  if (device.compute_major < 8 || !p.half() || p.mask || d > 256) return false;
  if (d != p.key->sizes.back() || d != p.value->sizes.back()) return false;
  if (p.causal && p.query->sizes[2] != p.key->sizes[2]) return false;
  const bool small_shared_memory =
      (device.compute_major == 8 && device.compute_minor >= 6) || device.compute_major >= 12;
  return !p.training || !small_shared_memory || d <= 192 || (p.dropout == 0 && d > 224);
}

bool efficient_can(const DeviceFacts& device, const Problem& p) {
  const bool bf16 = p.query->dtype == DType::bf16;
  if (!(p.half() || p.query->dtype == DType::f32) || (bf16 && device.compute_major < 8)) return false;
  const std::int64_t aligned = p.half() ? (device.compute_major >= 7 ? 8 : 1) : (device.compute_major >= 8 ? 4 : 1);
  return p.same_heads() && p.head_size() == p.key->sizes.back() && p.head_size() % aligned == 0 &&
         p.value->sizes.back() % aligned == 0;
}

bool can(AttentionBackend b, const DeviceFacts& device, const Problem& p) {
  switch (b) {
    case AttentionBackend::cudnn:
      return fusible(p) && cudnn_can(device, p);
    case AttentionBackend::flash:
      return fusible(p) && flash_can(device, p);
    case AttentionBackend::efficient:
      return fusible(p) && efficient_can(device, p);
    case AttentionBackend::math:
    case AttentionBackend::automatic:
      break;
  }
  return true;
}

std::string_view option_of(AttentionBackend b) {
  switch (b) {
    case AttentionBackend::cudnn:
      return "cudnn";
    case AttentionBackend::flash:
      return "flash";
    case AttentionBackend::efficient:
      return "efficient";
    case AttentionBackend::math:
      return "math";
    case AttentionBackend::automatic:
      break;
  }
  return "auto";
}

/// The first backend of PyTorch's priority order that can; a backend asked for by name must be able to.
AttentionBackend choose(const DeviceFacts& device, const Problem& p) {
  if (device.attention != AttentionBackend::automatic) {
    if (can(device.attention, device, p)) return device.attention;
    throw usage_error("PyTorch has no " + std::string(option_of(device.attention)) + " kernel for an attention of " +
                          std::string(headroom::name_of(p.query->dtype)) + " with query " + text_of(p.query->sizes) +
                          " and key " + text_of(p.key->sizes) + (p.mask ? " with a mask" : ""),
                      "--attention " + std::string(option_of(device.attention)),
                      "leave --attention out: PyTorch chooses per call");
  }
  const bool cudnn_first = device.compute_major == 9 || device.compute_major == 10;
  if (cudnn_first && can(AttentionBackend::cudnn, device, p)) return AttentionBackend::cudnn;
  for (const auto b : {AttentionBackend::flash, AttentionBackend::efficient})
    if (can(b, device, p)) return b;
  return AttentionBackend::math;
}

// ---- above autograd ------------------------------------------------------------------------------------------------

/// convert_boolean_attn_mask: where(mask, 0, -inf) of two device scalars.
Tensor additive_mask(Shadow& m, const Tensor& mask, DType dtype) {
  if (!mask || mask->dtype != DType::b8) return mask;
  const Tensor zero = m.empty({}, dtype);
  const Tensor infinity = m.empty({}, dtype);
  return m.empty_like(mask, dtype);
}

/// preprocess_mask: a mask whose rows are not aligned to 8 elements is padded and cut back; then it is expanded.
Tensor aligned_mask(Shadow& m, const Tensor& mask, const Dims& scores) {
  constexpr std::int64_t alignment = 8;
  Tensor aligned = mask;
  const bool fits =
      std::all_of(mask->strides.begin(), mask->strides.end() - 1, [](std::int64_t s) { return s % alignment == 0; });
  if (!fits || mask->strides.back() != 1) {
    const std::int64_t last = mask->sizes.back();
    aligned = m.one("aten::constant_pad_nd", mask, Dims{0, alignment - last % alignment}, 0);
    aligned = m.one("aten::slice.Tensor", aligned, -1, 0, last, 1);
  }
  return m.one("aten::expand", aligned, scores);
}

/// Flash attention wants heads of a multiple of 8 elements.
Tensor padded_head(Shadow& m, const Tensor& t) {
  constexpr std::int64_t alignment = 8;
  const std::int64_t last = t->sizes.back();
  return last % alignment == 0 ? t : m.one("aten::constant_pad_nd", t, Dims{0, alignment - last % alignment}, 0);
}

// aten::scaled_dot_product_attention(query, key, value, attn_mask?, dropout_p, is_causal, *, scale?, enable_gqa)
Outputs scaled_dot_product_attention(Shadow& m, Args a) {
  const Tensor &q = a.tensor(0), &k = a.tensor(1), &v = a.tensor(2);
  const bool training = m.grad_enabled() && (needs_grad(q) || needs_grad(k) || needs_grad(v));
  const Problem problem{q, k, v, a.tensor(3), a.real(4), a.boolean(5), a.boolean(7), training};
  const AttentionBackend backend = choose(m.device(), problem);
  Tensor mask = additive_mask(m, a.tensor(3), q->dtype);
  switch (backend) {
    case AttentionBackend::cudnn:
      return {m.all("aten::_scaled_dot_product_cudnn_attention", a[0], a[1], a[2], mask, training, a[4], a[5], false,
                    a[6])[0]};
    case AttentionBackend::flash: {
      const std::int64_t d = q->sizes.back();
      const Tensor qp = padded_head(m, q), kp = padded_head(m, k), vp = padded_head(m, v);
      const double scale = a.given(6) ? a.real(6) : 1 / std::sqrt(static_cast<double>(d));
      Tensor out = m.all("aten::_scaled_dot_product_flash_attention", qp, kp, vp, a[4], a[5], false, scale)[0].tensor();
      if (out->sizes.back() != d) out = m.one("aten::slice.Tensor", out, -1, 0, d, 1);
      return {std::move(out)};
    }
    case AttentionBackend::efficient:
      if (mask) mask = aligned_mask(m, mask, {q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2]});
      return {m.all("aten::_scaled_dot_product_efficient_attention", a[0], a[1], a[2], mask, training, a[4], a[5],
                    a[6])[0]};
    case AttentionBackend::math:
    case AttentionBackend::automatic:
      break;
  }
  return {
      m.all("aten::_scaled_dot_product_attention_math", a[0], a[1], a[2], mask, a[4], a[5], Value(), a[6], a[7])[0]};
}

// aten::_scaled_dot_product_attention_math(query, key, value, attn_mask?, dropout_p, is_causal, dropout_mask?, *,
//                                          scale?, enable_gqa) -> (output, probabilities); halves go through float32.
Outputs attention_math(Shadow& m, Args a) {
  const DType origin = a.tensor(0)->dtype;
  const auto exact = [&](std::size_t i) {
    return is_half(a.tensor(i)->dtype) ? m.one("aten::to.dtype", a[i], DType::f32) : a.tensor(i);
  };
  const Tensor query_acc = exact(0), key_acc = exact(1), value_acc = exact(2);
  Tensor mask = a.tensor(3);
  const double scale = a.given(7) ? std::abs(a.real(7)) : 1 / std::sqrt(static_cast<double>(query_acc->sizes.back()));
  const double factor = std::sqrt(scale);
  const Tensor query = m.one("aten::mul.Tensor", query_acc, factor);
  const std::size_t rank = query->dim();
  if (a.boolean(5)) {
    const Dims square{query->sizes[rank - 2], key_acc->sizes[rank - 2]};
    mask = m.one("aten::tril", m.one("aten::ones", square, DType::b8), 0);
    mask = additive_mask(m, mask, query->dtype);
  }
  Tensor key_expanded = key_acc, value_expanded = value_acc;
  if (a.boolean(8) && rank >= 3) {
    const auto repeated = [&](const Tensor& t) {
      const std::int64_t n = query->sizes[rank - 3] / t->sizes[rank - 3];
      return n == 1 ? t : m.one("aten::repeat_interleave.self_int", t, n, -3);
    };
    key_expanded = repeated(key_acc);
    value_expanded = repeated(value_acc);
  }
  Tensor attn = m.one("aten::matmul", query,
                      m.one("aten::mul.Tensor", m.one("aten::transpose.int", key_expanded, -2, -1), factor));
  if (mask) attn = m.one("aten::add_.Tensor", std::move(attn), mask);
  attn = m.one("aten::_safe_softmax", attn, -1);
  if (a.real(4) > 0) attn = m.one("aten::dropout", attn, a[4], true);
  const auto as_origin = [&](Tensor t) {
    return t->dtype == origin ? t : m.one("aten::to.dtype", std::move(t), origin);
  };
  Tensor probabilities = as_origin(attn);
  Tensor out = as_origin(m.one("aten::matmul", attn, value_expanded));
  return {std::move(out), std::move(probabilities)};
}

// ---- kernels -------------------------------------------------------------------------------------------------------

/// An [B, H, S, D] tensor that lies in memory as [B, S, H, D].
Tensor sequence_first(Shadow& m, const Dims& sizes, DType dtype) {
  const Tensor t = m.empty({sizes[0], sizes[2], sizes[1], sizes[3]}, dtype);
  return transposed(m, t, 1, 2);
}

Dims output_sizes(const Tensor& query, const Tensor& value) {
  Dims sizes = query->sizes;
  sizes.back() = value->sizes.back();
  return sizes;
}

// aten::_scaled_dot_product_cudnn_attention(query, key, value, attn_bias?, compute_log_sumexp, dropout_p, is_causal,
//   return_debug_mask, *, scale?) -> (output, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, philox_seed,
//   philox_offset, debug_attn_mask)
Outputs cudnn_attention(Shadow& m, Args a) {
  const Tensor& q = a.tensor(0);
  const Dims sizes = output_sizes(q, a.tensor(2));
  Tensor seed = m.empty({}, DType::i64);
  Tensor offset = m.empty({}, DType::i64);
  Tensor out = m.empty_strided(sizes, dense_strides_like(sizes, q->strides), q->dtype);
  Tensor lse = a.boolean(4) ? m.empty({sizes[0], sizes[1], sizes[2], 1}, DType::f32) : Tensor();
  m.workspace(Bytes(256));
  return {std::move(out),        std::move(lse),  Value(),           Value(), q->sizes[2],
          a.tensor(1)->sizes[2], std::move(seed), std::move(offset), Value()};
}

// aten::_scaled_dot_product_cudnn_attention_backward(grad_out, query, key, value, out, logsumexp, ...). The workspace
// is a float32 gradient of the query, a row sum, and for grouped heads the ungrouped gradients of key and value.
Outputs cudnn_attention_backward(Shadow& m, Args a) {
  const Tensor &q = a.tensor(1), &k = a.tensor(2), &v = a.tensor(3);
  Tensor grad_query = m.empty_like(q), grad_key = m.empty_like(k), grad_value = m.empty_like(v);
  const Tensor& grad = a.tensor(0);
  const Tensor dense = grad->strides.back() == 1 ? grad : m.empty_like(a.tensor(4));
  const std::int64_t rows = q->sizes[0] * q->sizes[1] * q->sizes[2];
  Bytes workspace = bytes_of(DType::f32, q->count()) + bytes_of(DType::f32, rows) + Bytes(256);
  if (k->sizes[1] != q->sizes[1]) {
    const std::int64_t keys = checked_mul(q->sizes[0] * q->sizes[1], k->sizes[2]);
    workspace +=
        bytes_of(k->dtype, checked_mul(keys, k->sizes[3])) + bytes_of(v->dtype, checked_mul(keys, v->sizes[3]));
  }
  m.workspace(workspace);
  return {std::move(grad_query), std::move(grad_key), std::move(grad_value)};
}

// aten::_scaled_dot_product_efficient_attention(query, key, value, attn_bias?, compute_log_sumexp, dropout_p,
//   is_causal, *, scale?) -> (output, log_sumexp, philox_seed, philox_offset); the random state is on the host.
Outputs efficient_attention(Shadow& m, Args a) {
  const Tensor& q = a.tensor(0);
  const Dims sizes = output_sizes(q, a.tensor(2));
  Tensor out = sequence_first(m, sizes, q->dtype);
  constexpr std::int64_t row_alignment = 32;
  Tensor lse = m.empty({sizes[0], sizes[1], a.boolean(4) ? rounded_up(sizes[2], row_alignment) : 0}, DType::f32);
  return {std::move(out), std::move(lse), m.host_tensor({}, DType::i64), m.host_tensor({}, DType::i64)};
}

/// Bytes in which the backward kernel collects the query's gradient: blocks of queries by blocks of the head, each with
/// a lock of 16 bytes (AttentionBackwardKernel::Params::workspace_size). Heads above 128 also collect the key's and the
/// value's, where those are not float32 themselves.
Bytes efficient_workspace(const Tensor& q, const Tensor& v) {
  const std::int64_t d = std::max(q->sizes[3], v->sizes[3]);
  const bool large = d > 64;
  const std::int64_t rows = large ? 128 : 64;
  const std::int64_t columns = !large || d > 128 || q->dtype == DType::f32 ? 64 : 128;
  const std::int64_t lock = 16;
  const std::int64_t blocks = (q->sizes[2] + rows - 1) / rows * ((d + columns - 1) / columns);
  Bytes head = Bytes(rows * columns * 4 + lock) * blocks;
  if (d > 128 && q->dtype != DType::f32) head += bytes_of(DType::f32, 2 * 64 * rounded_up(d, 128));
  return head * q->sizes[0] * q->sizes[1];
}

// aten::_scaled_dot_product_efficient_attention_backward(grad_out, query, key, value, attn_bias, out, logsumexp,
//   philox_seed, philox_offset, dropout_p, grad_input_mask, is_causal, *, scale?)
Outputs efficient_attention_backward(Shadow& m, Args a) {
  const Tensor &q = a.tensor(1), &k = a.tensor(2), &v = a.tensor(3), &bias = a.tensor(4);
  const Tensor grad = m.contiguous(transposed(m, a.tensor(0), 1, 2));
  Tensor grad_query = sequence_first(m, q->sizes, q->dtype);
  Tensor grad_key = sequence_first(m, k->sizes, k->dtype);
  Tensor grad_value = sequence_first(m, v->sizes, v->dtype);
  Tensor grad_bias;
  if (bias && wanted(a[10], 3)) {
    constexpr std::int64_t alignment = 16;
    Dims padded = bias->sizes;
    padded.back() = rounded_up(padded.back(), alignment);
    const Tensor whole = m.empty(padded, bias->dtype);
    grad_bias = m.alias(whole, bias->sizes, whole->strides, 0);
  }
  Ref<Storage> workspace;
  {
    Tensor delta;
    if (q->dtype == DType::f32) {
      const Tensor product = m.empty(grad->sizes, DType::f32);
      const Tensor sum = reduce(m, product, {3}, false, DType::f32);
      delta = m.contiguous(transposed(m, sum, 1, 2));
    } else {
      delta = m.empty({q->sizes[0], q->sizes[1], q->sizes[2]}, DType::f32);
    }
    workspace = m.workspace(efficient_workspace(q, v));
  }
  return {std::move(grad_query), std::move(grad_key), std::move(grad_value), std::move(grad_bias)};
}

/// num_splits_heuristic of flash_api.cpp: how many ways a short query's keys are split to fill the card.
std::int64_t flash_splits(std::int64_t blocks, std::int64_t processors, std::int64_t key_blocks) {
  if (static_cast<double>(blocks) >= 0.8 * static_cast<double>(processors)) return 1;
  const std::int64_t most = std::min<std::int64_t>({128, processors, key_blocks});
  const auto eligible = [&](std::int64_t n) {
    return n == 1 || ceil_div(key_blocks, n) != ceil_div(key_blocks, n - 1);
  };
  const auto efficiency = [&](std::int64_t n) {
    const double waves = static_cast<double>(blocks * n) / static_cast<double>(processors);
    return waves / std::ceil(waves);
  };
  double best = 0;
  for (std::int64_t n = 1; n <= most; ++n)
    if (eligible(n)) best = std::max(best, efficiency(n));
  for (std::int64_t n = 1; n <= most; ++n)
    if (eligible(n) && efficiency(n) >= 0.85 * best) return n;
  return 1;
}

std::int64_t flash_head_rounded(std::int64_t d) { return rounded_up(d, d <= 128 ? 32 : 64); }

// aten::_scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, return_debug_mask, *, scale?)
//   -> (output, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, rng_state, unused, debug_attn_mask)
Outputs flash_attention(Shadow& m, Args a) {
  const Tensor &q = a.tensor(0), &k = a.tensor(1);
  const std::int64_t b = q->sizes[0], h = q->sizes[1], s = q->sizes[2], d = q->sizes[3];
  Tensor out = m.empty_like(q);
  Tensor lse = m.empty({b, h, s}, DType::f32);
  Tensor lse_parts, out_parts;
  if (a.real(3) == 0) {
    const std::int64_t key_block = d <= 64 ? 256 : d <= 128 ? 128 : 64, query_block = 64;
    const std::int64_t splits = flash_splits(b * h * ((s + query_block - 1) / query_block), 2 * m.device().sm_count,
                                             (k->sizes[2] + key_block - 1) / key_block);
    if (splits > 1) {
      lse_parts = m.empty({splits, b, h, s}, DType::f32);
      out_parts = m.empty({splits, b, h, s, flash_head_rounded(d)}, DType::f32);
    }
  }
  Tensor state = m.empty({2}, DType::u64);
  Tensor unused = m.empty({}, DType::u64);
  if (a.real(3) > 0) state = m.empty({2}, DType::u64);
  return {std::move(out), std::move(lse),   Value(),           Value(), s,
          k->sizes[2],    std::move(state), std::move(unused), Value()};
}

// aten::_scaled_dot_product_flash_attention_backward(grad_out, query, key, value, out, logsumexp, ...)
Outputs flash_attention_backward(Shadow& m, Args a) {
  const Tensor &q = a.tensor(1), &k = a.tensor(2), &v = a.tensor(3);
  const std::int64_t b = q->sizes[0], h = q->sizes[1], d = q->sizes[3];
  const Tensor grad = m.contiguous(transposed(m, a.tensor(0), 1, 2));
  const Tensor out = m.contiguous(transposed(m, a.tensor(4), 1, 2));
  Tensor grad_query = m.empty_like(q), grad_key = m.empty_like(k), grad_value = m.empty_like(v);
  constexpr std::int64_t row_alignment = 128;
  const std::int64_t rows = rounded_up(q->sizes[2], row_alignment);
  const Tensor row_sums = m.empty({b, h, rows}, DType::f32);
  const Tensor query_sum = m.empty({b, rows, h, flash_head_rounded(d)}, DType::f32);
  if (k->sizes[1] != h) {
    const Dims ungrouped{b, k->sizes[2], k->sizes[1], h / k->sizes[1], d};
    const Tensor of_key = m.empty(ungrouped, k->dtype), of_value = m.empty(ungrouped, v->dtype);
    reduce_scratch(m, of_key, {3});
    reduce_scratch(m, of_value, {3});
  }
  return {std::move(grad_query), std::move(grad_key), std::move(grad_value)};
}

// ---- torch.nn's fast path (transformers/cuda/attention.cu, transformers/transformer.cpp) ----------------------------

/// Projections, attention and projection, fused where a kernel takes the heads as they lie in the first projection.
Tensor fused_attention(Shadow& m, Args a, Tensor* weights) {
  const Tensor& x = a.tensor(0);
  const std::int64_t batch = x->sizes[0], length = x->sizes[1], width = a.integer(3), heads = a.integer(4);
  const auto by_head = [&](const Tensor& t) {
    return transposed(m, reshaped(m, t, {batch, length, heads, width / heads}), 1, 2);
  };
  const bool itself = x == a.tensor(1) && x == a.tensor(2), masked = a.given(9);
  const Tensor query = by_head(x), no_mask;
  constexpr std::int64_t unit = 8;  // of a head's size
  if (itself && !masked && !weights && width / heads % unit == 0 &&
      choose(m.device(), {.query = query, .key = query, .value = query, .mask = no_mask}) != AttentionBackend::math) {
    const Tensor packed = m.one("aten::linear", x, a[5], a[6]);
    const auto part = [&](std::int64_t i) { return by_head(sliced(m, packed, 2, i * width, width)); };
    const Tensor out = m.one("aten::scaled_dot_product_attention", part(0), part(1), part(2));
    return m.one("aten::linear", reshaped(m, transposed(m, out, 1, 2), {batch, length, width}), a[7], a[8]);
  }
  Tensor projected = m.one("aten::matmul", x, m.one("aten::t", a[5]));
  const Dims parts{3, batch, heads, length, width / heads};
  const Tensor packed = m.empty(parts, x->dtype);
  projected.reset();
  const auto part = [&](std::int64_t i) {
    return reshaped(m, sliced(m, packed, 0, i, 1), {batch * heads, length, width / heads});
  };
  Tensor scores = m.one("aten::bmm", part(0), transposed(m, part(1), 1, 2));
  m.use_cublas();  // the weighted sum is written over the query
  if (!weights) scores.reset();
  const Tensor joined = m.empty({batch, length, width}, x->dtype);
  Tensor out = m.one("aten::linear", joined, a[7], a[8]);
  if (weights && a.boolean(11))
    scores = m.one("aten::sum.dim_IntList", reshaped(m, scores, {batch, heads, length, length}), Dims{1});
  if (weights) *weights = std::move(scores);
  return out;
}

// aten::_native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight,
//   proj_bias, mask?, need_weights, average_attn_weights, mask_type?) -> (output, weights). Query, key, value [B, S,
//   E].
Outputs native_multi_head_attention(Shadow& m, Args a) {
  Tensor weights;
  Tensor out = fused_attention(m, a, a.boolean(10) ? &weights : nullptr);
  return {std::move(out), std::move(weights)};
}

// aten::_transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias,
//   use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1,
//   ffn_weight_2, ffn_bias_2, mask?, mask_type?). The activation is the first product's epilogue, sums are in place.
Outputs encoder_layer(Shadow& m, Args a) {
  const bool norm_first = a.boolean(8);
  const auto normed = [&](const Tensor& x, std::size_t weight) {
    return m.one("aten::layer_norm", x, Dims{a.integer(1)}, a[weight], a[weight + 1], a[9]);
  };
  Tensor x = norm_first ? normed(a.tensor(0), 10) : a.tensor(0);
  {
    const std::array<Value, 12> attention{x, x, x, a[1], a[2], a[3], a[4], a[5], a[6], a[18], false, true};
    x = fused_attention(m, Args(attention), nullptr);
  }
  if (!norm_first) x = normed(x, 10);
  const Tensor middle = x;
  if (norm_first) x = normed(x, 12);
  Tensor wide = m.one("aten::linear", x, a[14], a[15]);
  wide = m.one("aten::linear", wide, a[16], a[17]);
  x = std::move(wide);
  if (!norm_first) x = normed(x, 12);
  return {x};
}

using Kind = Operator::Kind;
constexpr Operator operators[] = {
    {"aten::scaled_dot_product_attention", Kind::composite, scaled_dot_product_attention},
    {"aten::_native_multi_head_attention", Kind::kernel, native_multi_head_attention},
    {"aten::_transformer_encoder_layer_fwd", Kind::kernel, encoder_layer},
    {"aten::_scaled_dot_product_attention_math", Kind::composite, attention_math},
    {"aten::_scaled_dot_product_cudnn_attention", Kind::kernel, cudnn_attention},
    {"aten::_scaled_dot_product_cudnn_attention_backward", Kind::kernel, cudnn_attention_backward},
    {"aten::_scaled_dot_product_efficient_attention", Kind::kernel, efficient_attention},
    {"aten::_scaled_dot_product_efficient_attention_backward", Kind::kernel, efficient_attention_backward},
    {"aten::_scaled_dot_product_flash_attention", Kind::kernel, flash_attention},
    {"aten::_scaled_dot_product_flash_attention_backward", Kind::kernel, flash_attention_backward},
};

}  // namespace

std::span<const Operator> attention_operators() { return operators; }

}  // namespace headroom::shadow
