// Attention and rotary embedding of the standard domain.
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

/// Heads and their size, of a [B, heads, S, E] tensor or of a [B, S, heads * E] one with its number of heads.
struct Heads {
  std::int64_t batch, heads, length, size;
};
Heads heads_of(const NodeShaper& op, std::size_t input, std::string_view attribute) {
  const Dims& d = op.dims(input);
  if (d.size() == 4) return {d[0], d[1], d[2], d[3]};
  op.require(d.size() == 3, "input " + std::to_string(input) + " must have 3 or 4 dimensions");
  const std::int64_t heads = op.node().integer(attribute, 0);
  op.require(heads > 0 && d[2] % heads == 0,
             std::to_string(d[2]) + " features do not divide into " + std::to_string(heads) + " heads");
  return {d[0], heads, d[1], d[2] / heads};
}

/// Attention(Q, K, V, attn_mask, past_key, past_value) -> Y, present_key, present_value, qk_matmul_output.
void attention(const NodeShaper& op) {
  const Heads q = heads_of(op, 0, "q_num_heads"), k = heads_of(op, 1, "kv_num_heads"),
              v = heads_of(op, 2, "kv_num_heads");
  op.same_size(q.size, k.size, "the head sizes of Q and K");
  op.same_size(k.length, v.length, "the lengths of K and V");
  op.require(k.heads > 0 && q.heads % k.heads == 0, "the query heads do not divide into the key heads");
  const std::int64_t past = op.has(4) ? op.dims_of_rank(4, 4)[2] : 0;
  const std::int64_t total = checked_add(past, k.length);
  op.set(0, op.dtype(0),
         op.rank(0) == 4 ? Dims{q.batch, q.heads, q.length, v.size}
                         : Dims{q.batch, q.length, checked_mul(q.heads, v.size)});
  op.set(1, op.dtype(1), {k.batch, k.heads, total, k.size});
  op.set(2, op.dtype(2), {v.batch, v.heads, total, v.size});
  op.set(3, op.dtype(0), {q.batch, q.heads, q.length, total});
}

void rotary_embedding(const NodeShaper& op) {
  heads_of(op, 0, "num_heads");
  op.same_shape(0, 0);
}

/// LinearAttention(query, key, value, past_state) -> output [B, T, H_q * d_v], present_state [B, H_kv, d_k, d_v].
void linear_attention(const NodeShaper& op) {
  op.dims_of_rank(0, 3);
  const Heads q = heads_of(op, 0, "q_num_heads"), k = heads_of(op, 1, "kv_num_heads"),
              v = heads_of(op, 2, "kv_num_heads");
  op.set(0, op.dtype(0), {q.batch, q.length, checked_mul(q.heads, v.size)});
  op.set(1, op.has(3) ? op.dtype(3) : op.dtype(0), {k.batch, k.heads, k.size, v.size});
}

constexpr OperatorRule rules[] = {
    {"Attention", attention}, {"RotaryEmbedding", rotary_embedding}, {"LinearAttention", linear_attention}};

/// FlexAttention(Q, K, V), rank 4; score_mod and prob_mod keep the scores' shape.
void flex_attention(const NodeShaper& op) {
  const Dims &q = op.dims_of_rank(0, 4), &k = op.dims_of_rank(1, 4), &v = op.dims_of_rank(2, 4);
  op.same_size(q[3], k[3], "the head sizes of Q and K");
  op.same_size(k[2], v[2], "the lengths of K and V");
  op.set(0, op.dtype(0), {q[0], q[1], q[2], v[3]});
}

constexpr OperatorRule preview[] = {{"FlexAttention", flex_attention}};

}  // namespace

std::span<const OperatorRule> attention_rules() { return rules; }
std::span<const OperatorRule> preview_rules() { return preview; }

}  // namespace headroom
