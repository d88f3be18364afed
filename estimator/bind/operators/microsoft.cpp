// The com.microsoft domain: what onnxruntime's optimiser and quantiser write.
#include <algorithm>

#include "estimator/bind/operators/families.h"
#include "estimator/bind/operators/products.h"
#include "estimator/bind/operators/window.h"

namespace headroom {
namespace {

void unchanged(const NodeShaper& op) { op.same_shape(0, 0); }

/// MatMulNBits(A [..., K], B packed): attributes K and N.
void matmul_nbits(const NodeShaper& op) {
  Dims result = op.dims(0);
  op.require(!result.empty(), "A is a scalar");
  op.same_size(result.back(), op.node().integer("K", -1), "the last size of A and K");
  result.back() = op.node().integer("N", -1);
  op.set(0, op.dtype(0), std::move(result));
}

/// FusedMatMul: transA and transB swap the last two dims, transBatchA and transBatchB move the first to last but one.
void fused_matmul(const NodeShaper& op) {
  const auto turned = [&](std::size_t input, std::string_view swap, std::string_view rotate) {
    Dims d = op.dims(input);
    if (d.size() >= 3 && op.node().integer(rotate, 0) != 0) std::rotate(d.begin(), d.begin() + 1, d.end() - 1);
    if (d.size() >= 2 && op.node().integer(swap, 0) != 0) std::swap(d[d.size() - 1], d[d.size() - 2]);
    return d;
  };
  op.set(0, op.dtype(0), matmul_dims(op, turned(0, "transA", "transBatchA"), turned(1, "transB", "transBatchB")));
}

void matmul_to_float(const NodeShaper& op) { op.set(0, DType::f32, matmul_dims(op, op.dims(0), op.dims(1))); }

/// FusedGemm, GemmFastGelu.
void fused_gemm(const NodeShaper& op) {
  const Dims &a = op.dims_of_rank(0, 2), &b = op.dims_of_rank(1, 2);
  const bool ta = op.node().integer("transA", 0) != 0, tb = op.node().integer("transB", 0) != 0;
  op.same_size(a[ta ? 0 : 1], b[tb ? 1 : 0], "the inner sizes");
  op.set(0, op.dtype(0), {a[ta ? 1 : 0], b[tb ? 0 : 1]});
}

/// QGemm(A, a_scale, a_zero_point, B, b_scale, b_zero_point, C, y_scale, y_zero_point).
void qgemm(const NodeShaper& op) {
  const Dims &a = op.dims_of_rank(0, 2), &b = op.dims_of_rank(3, 2);
  const bool ta = op.node().integer("transA", 0) != 0, tb = op.node().integer("transB", 0) != 0;
  op.same_size(a[ta ? 0 : 1], b[tb ? 1 : 0], "the inner sizes");
  op.set(0, op.has(8) ? op.dtype(8) : DType::f32, {a[ta ? 1 : 0], b[tb ? 0 : 1]});
}

/// QLinearAdd, QLinearMul(A, a_scale, a_zero_point, B, ...).
void qlinear_binary(const NodeShaper& op) { op.set(0, op.dtype(0), op.broadcast_inputs({0, 3})); }

void qlinear_global_pool(const NodeShaper& op) {
  Dims result = op.dims(0);
  op.require(result.size() >= 3, "the input has no spatial dimension");
  const bool channels_last = op.node().integer("channels_last", 0) != 0;
  const auto first = result.begin() + (channels_last ? 1 : 2);
  std::fill(first, result.end() - (channels_last ? 1 : 0), 1);
  op.set(0, op.dtype(0), std::move(result));
}

void quantize(const NodeShaper& op) { op.set(0, op.has(2) ? op.dtype(2) : DType::u8, op.dims(0)); }
void dequantize(const NodeShaper& op) { op.set(0, op.dtype(1), op.dims(0)); }

/// FusedConv: as Conv.
void fused_conv(const NodeShaper& op) { shape_rule("", "Conv")(op); }

/// NhwcConv: x [N, ..., C], w [M, ..., C/group] -> [N, ..., M].
void nhwc_conv(const NodeShaper& op) {
  const Dims &x = image_dims(op, 0), &w = op.dims_of_rank(1, x.size());
  const std::int64_t group = op.node().integer("group", 1);
  op.require(group > 0 && x.back() % group == 0 && x.back() / group == w.back(),
             "the channels of input and weight do not match");
  const Window window(op, x.size() - 2, Dims(w.begin() + 1, w.end() - 1));
  Dims result = {x[0]};
  for (std::size_t i = 0; i + 2 < x.size(); ++i) result.push_back(window.slid(op, x[i + 1], i));
  result.push_back(w[0]);
  op.set(0, op.dtype(0), std::move(result));
}

void nhwc_max_pool(const NodeShaper& op) {
  const Dims& x = image_dims(op, 0);
  const Window window(op, x.size() - 2, {});
  Dims result = {x[0]};
  for (std::size_t i = 0; i + 2 < x.size(); ++i)
    result.push_back(window.slid(op, x[i + 1], i, op.node().integer("ceil_mode", 0) != 0));
  result.push_back(x.back());
  op.set(0, op.dtype(0), std::move(result));
}

/// SkipLayerNormalization and the simplified one -> output, mean, inv_std_var, input + skip (+ bias).
void skip_layer_norm(const NodeShaper& op) {
  const Dims& x = op.dims(0);
  op.require(!x.empty() && op.broadcast(x, op.dims(1)) == x, "the skip does not broadcast to the input");
  Dims statistics = x;
  statistics.back() = 1;
  op.same_shape(0, 0);
  op.set(1, DType::f32, statistics);
  op.set(2, DType::f32, statistics);
  op.same_shape(3, 0);
}

/// SimplifiedLayerNormalization(X, scale) -> Y, inv_std_var.
void simplified_layer_norm(const NodeShaper& op) {
  Dims statistics = op.dims(0);
  const std::size_t axis = op.axis(op.node().integer("axis", -1), statistics.size());
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(axis), statistics.end(), 1);
  op.same_shape(0, 0);
  op.set(1, DType::f32, std::move(statistics));
}

/// GroupNorm, SkipGroupNorm -> output (, input + skip).
void group_norm(const NodeShaper& op) {
  op.same_shape(0, 0);
  op.same_shape(1, 0);
}

/// EmbedLayerNormalization(input_ids [B, S], segment_ids, word_embedding [V, H], ...) -> output, mask_index, sum.
void embed_layer_norm(const NodeShaper& op) {
  const Dims &ids = op.dims_of_rank(0, 2), &table = op.dims_of_rank(2, 2);
  const Dims result = {ids[0], ids[1], table[1]};
  op.set(0, op.dtype(2), result);
  op.set(1, DType::i32, {ids[0]});
  op.set(2, op.dtype(2), result);
}

std::int64_t heads_of(const NodeShaper& op) {
  const std::int64_t heads = op.node().integer("num_heads", 0);
  op.require(heads > 0, "num_heads is missing");
  return heads;
}

/// Attention(input [B, S, D], weights [D, 3 * H], bias, mask, past [2, B, heads, P, size]) -> output, present.
void attention(const NodeShaper& op) {
  const Dims &x = op.dims_of_rank(0, 3), &w = op.dims_of_rank(1, 2);
  const auto hidden = op.node().integers("qkv_hidden_sizes");
  op.same_size(x[2], w[0], "the features of input and weights");
  op.require(hidden.empty() || hidden.size() == 3, "qkv_hidden_sizes must have 3 numbers");
  const std::int64_t heads = heads_of(op);
  const std::int64_t key = hidden.empty() ? w[1] / 3 : hidden[1], value = hidden.empty() ? w[1] / 3 : hidden[2];
  const std::int64_t past = op.has(4) ? op.dims_of_rank(4, 5)[3] : 0;
  op.set(0, op.dtype(0), {x[0], x[1], value});
  op.set(1, op.dtype(0), {2, x[0], heads, checked_add(past, x[1]), key / heads});
}

/// MultiHeadAttention(query, key, value, bias, mask, attention_bias, past_key, past_value): [B, S, hidden] each, keys
/// and values also [B, heads, S, size]; packed query [B, S, heads, 3, size]; packed key [B, S, heads, 2, size].
void multi_head_attention(const NodeShaper& op) {
  const Dims& q = op.dims(0);
  const std::int64_t heads = heads_of(op);
  op.require(q.size() == 3 || q.size() == 5, "the query must have 3 or 5 dimensions");
  const std::int64_t hidden = q.size() == 5 ? checked_mul(q[2], q[4]) : q[2];
  std::int64_t length = q[1], key_size = hidden / heads, value_size = key_size;
  if (op.has(1)) {
    const Dims& k = op.dims(1);
    op.require(k.size() >= 3, "the key must have 3, 4 or 5 dimensions");
    length = k.size() == 4 ? k[2] : k[1];
  }
  if (op.has(2)) {
    const Dims& v = op.dims(2);
    op.require(v.size() >= 3, "the value must have 3 or 4 dimensions");
    value_size = v.size() == 4 ? v[3] : v[2] / heads;
  }
  const std::int64_t past = op.has(6) ? op.dims_of_rank(6, 4)[2] : 0;
  const std::int64_t total = checked_add(past, length);
  op.set(0, op.dtype(0), {q[0], q[1], checked_mul(heads, value_size)});
  op.set(1, op.dtype(0), {q[0], heads, total, key_size});
  op.set(2, op.dtype(0), {q[0], heads, total, value_size});
  op.set(3, op.dtype(0), {q[0], heads, q[1], total});
}

/// GroupQueryAttention(query [B, S, heads * size] (packed: + 2 * kv_heads * size), key, value, past_key [B, kv_heads,
/// P, size], past_value, seqlens_k, total_sequence_length) -> output, present_key, present_value.
void group_query_attention(const NodeShaper& op) {
  const Dims& q = op.dims_of_rank(0, 3);
  const std::int64_t heads = heads_of(op), kv_heads = op.node().integer("kv_num_heads", 0);
  op.require(kv_heads > 0 && heads % kv_heads == 0, "the heads do not divide into kv_num_heads");
  const bool packed = !op.has(1);
  const std::int64_t size = q[2] / (packed ? checked_add(heads, checked_mul(2, kv_heads)) : heads);
  const std::int64_t past = op.has(3) ? op.dims_of_rank(3, 4)[2] : 0;
  std::int64_t total = checked_add(past, packed ? q[1] : op.dims_of_rank(1, 3)[1]);
  // A cache of fixed size is written in place: the file then says how long the sequence is altogether.
  if (const Integers* given = op.integers(6); given && given->size() == 1) total = std::max(past, (*given)[0]);
  op.set(0, op.dtype(0), {q[0], q[1], checked_mul(heads, size)});
  op.set(1, op.has(3) ? op.dtype(3) : op.dtype(0), {q[0], kv_heads, total, size});
  op.set(2, op.has(4) ? op.dtype(4) : op.dtype(0), {q[0], kv_heads, total, size});
}

/// BiasSplitGelu: half the features gate the other half.
void bias_split_gelu(const NodeShaper& op) {
  Dims result = op.dims(0);
  op.require(!result.empty(), "the input is a scalar");
  result.back() /= 2;
  op.set(0, op.dtype(0), std::move(result));
}

/// RelativePositionBias(table [buckets, heads], query_length, key_length) -> [1, heads, query, key].
void relative_position_bias(const NodeShaper& op) {
  op.set(
      0, op.dtype(0),
      {1, op.dims_of_rank(0, 2)[1], op.needed_integer(1, "the query length"), op.needed_integer(2, "the key length")});
}

/// GatherBlockQuantized(data, indices, scales): data of uint8 may hold several elements a byte.
void gather_block_quantized(const NodeShaper& op) {
  const Dims &data = op.dims(0), &indices = op.dims(1);
  const std::size_t axis = op.axis(op.node().integer("gather_axis", 0), data.size());
  Dims result(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(axis));
  result.insert(result.end(), indices.begin(), indices.end());
  result.insert(result.end(), data.begin() + static_cast<std::ptrdiff_t>(axis) + 1, data.end());
  const std::int64_t bits = op.node().integer("bits", 4);
  op.require(bits > 0 && bits <= 8, "bits is " + std::to_string(bits));
  if (op.dtype(0) == DType::u8 && !result.empty()) result.back() = checked_mul(result.back(), 8 / bits);
  op.set(0, op.dtype(2), std::move(result));
}

constexpr OperatorRule rules[] = {
    {"Attention", attention},
    {"BiasAdd", unchanged},
    {"BiasGelu", unchanged},
    {"BiasSplitGelu", bias_split_gelu},
    {"DequantizeLinear", dequantize},
    {"DynamicQuantizeMatMul", matmul_to_float},
    {"EmbedLayerNormalization", embed_layer_norm},
    {"FastGelu", unchanged},
    {"FusedConv", fused_conv},
    {"FusedGemm", fused_gemm},
    {"FusedMatMul", fused_matmul},
    {"GatherBlockQuantized", gather_block_quantized},
    {"Gelu", unchanged},
    {"GemmFastGelu", fused_gemm},
    {"GroupNorm", group_norm},
    {"GroupQueryAttention", group_query_attention},
    {"Inverse", unchanged},
    {"LongformerAttention", unchanged},
    {"MatMulIntegerToFloat", matmul_to_float},
    {"MatMulNBits", matmul_nbits},
    {"MoE", unchanged},
    {"MultiHeadAttention", multi_head_attention},
    {"NhwcConv", nhwc_conv},
    {"NhwcFusedConv", nhwc_conv},
    {"NhwcMaxPool", nhwc_max_pool},
    {"QGemm", qgemm},
    {"QLinearAdd", qlinear_binary},
    {"QLinearGlobalAveragePool", qlinear_global_pool},
    {"QLinearLeakyRelu", unchanged},
    {"QLinearMul", qlinear_binary},
    {"QLinearSigmoid", unchanged},
    {"QLinearSoftmax", unchanged},
    {"QMoE", unchanged},
    {"QuantizeLinear", quantize},
    {"QuickGelu", unchanged},
    {"RelativePositionBias", relative_position_bias},
    {"RotaryEmbedding", unchanged},
    {"SimplifiedLayerNormalization", simplified_layer_norm},
    {"SkipGroupNorm", group_norm},
    {"SkipLayerNormalization", skip_layer_norm},
    {"SkipSimplifiedLayerNormalization", skip_layer_norm},
    {"TransposeMatMul", fused_matmul},
};

}  // namespace

std::span<const OperatorRule> microsoft_rules() { return rules; }

}  // namespace headroom
