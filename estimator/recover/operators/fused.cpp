// Fused operators: of ONNX Runtime's optimiser (domain com.microsoft), expanded to the eager module they were fused
// from, and opset 23's Attention.
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

std::string named(Recovery& r, std::string_view part) {
  return std::string(r.graph.name(r.out())) + "." + std::string(part);
}

Dims last_dim(Recovery& r, ValueId v) { return {r.dims(v).back()}; }

/// add, then layer norm; output 3 is the sum.
void skip_layer_norm(Recovery& r) {
  SlotId sum = r.call("aten::add.Tensor", {r.tensor(0), r.tensor(1)}, named(r, "sum"));
  if (r.has(4)) sum = r.call("aten::add.Tensor", {sum, r.tensor(4)}, named(r, "biased"));
  if (r.out(3).valid()) r.define(r.out(3), sum);
  r.emit("aten::layer_norm",
         {sum, last_dim(r, r.in(0)), r.optional_tensor(2), r.optional_tensor(3), r.onnx().real("epsilon", 1e-12)});
}

void skip_rms_norm(Recovery& r) {
  const SlotId sum = r.call("aten::add.Tensor", {r.tensor(0), r.tensor(1)}, named(r, "sum"));
  if (r.out(3).valid()) r.define(r.out(3), sum);
  r.emit("aten::rms_norm", {sum, last_dim(r, r.in(0)), r.optional_tensor(2), r.onnx().real("epsilon", 1e-6)});
}

/// word, position and segment embeddings, their sum, layer norm.
void embed_layer_norm(Recovery& r) {
  const Dims& ids = r.dims(r.in(0));
  SlotId sum = r.call("aten::embedding", {r.tensor(2), r.tensor(0)}, named(r, "words"));
  const SlotId range = r.call("aten::arange", {ids.back(), DType::i64}, named(r, "position_ids"));
  const SlotId positions = r.call("aten::embedding", {r.tensor(3), range}, named(r, "positions"));
  if (r.has(1) && r.has(4)) {
    const SlotId segments = r.call("aten::embedding", {r.tensor(4), r.tensor(1)}, named(r, "segments"));
    sum = r.call("aten::add.Tensor", {sum, segments}, named(r, "with_segments"));
  }
  sum = r.call("aten::add.Tensor", {sum, positions}, named(r, "sum"));
  r.emit("aten::layer_norm",
         {sum, Dims{r.out_dims().back()}, r.optional_tensor(5), r.optional_tensor(6), r.onnx().real("epsilon", 1e-12)});
}

/// q, k and v in one projection, attention, heads put together again.
void attention(Recovery& r) {
  const Dims x = r.dims(r.in(0));
  const std::int64_t heads = r.onnx().integer("num_heads", 1);
  const std::int64_t hidden = r.out_dims().back(), per_head = heads ? hidden / heads : hidden;
  const SlotId weight = r.parameters.stored(r.in(1), true);
  const SlotId packed = r.call("aten::linear", {r.tensor(0), weight, r.optional_tensor(2)}, named(r, "qkv"));
  const Slots parts{r.builder.slot(named(r, "q")), r.builder.slot(named(r, "k")), r.builder.slot(named(r, "v"))};
  r.list_call("aten::split.Tensor", {packed, hidden, std::int64_t{-1}}, parts);
  std::array<SlotId, 3> split;
  for (std::size_t i = 0; i < 3; ++i) {
    const SlotId s = r.call("aten::view", {parts[i], Dims{x[0], x[1], heads, per_head}}, named(r, "heads"));
    split[i] = r.call("aten::transpose.int", {s, std::int64_t{1}, std::int64_t{2}}, named(r, "by_head"));
  }
  const SlotId y = r.call("aten::scaled_dot_product_attention",
                          {split[0], split[1], split[2], None{}, 0.0, r.onnx().integer("unidirectional", 0) != 0},
                          named(r, "attention"));
  const SlotId back = r.call("aten::transpose.int", {y, std::int64_t{1}, std::int64_t{2}}, named(r, "together"));
  r.emit("aten::reshape", {back, r.out_dims()});
}

/// Opset 23's Attention: the call itself.
void standard_attention(Recovery& r) {
  const SlotId q = r.tensor(0), k = r.tensor(1), v = r.tensor(2);
  const Dims& query = r.dims(r.in(0));
  const bool causal = r.onnx().integer("is_causal", 0) != 0;
  const auto split = [&](SlotId x, ValueId of, std::string_view heads_attribute) {
    const Dims d = r.dims(of);
    const std::int64_t heads = r.onnx().integer(heads_attribute, 1);
    const SlotId s = r.call("aten::view", {x, Dims{d[0], d[1], heads, d[2] / heads}}, named(r, "heads"));
    return r.call("aten::transpose.int", {s, std::int64_t{1}, std::int64_t{2}}, named(r, "by_head"));
  };
  if (query.size() == 4) {
    const bool grouped = r.dims(r.in(1))[1] != query[1];
    r.emit("aten::scaled_dot_product_attention",
           {q, k, v, r.optional_tensor(3), 0.0, causal, Unset{}, grouped ? Arg(true) : Arg(Unset{})});
    return;
  }
  const SlotId y = r.call("aten::scaled_dot_product_attention",
                          {split(q, r.in(0), "q_num_heads"), split(k, r.in(1), "kv_num_heads"),
                           split(v, r.in(2), "kv_num_heads"), r.optional_tensor(3), 0.0, causal},
                          named(r, "attention"));
  const SlotId back = r.call("aten::transpose.int", {y, std::int64_t{1}, std::int64_t{2}}, named(r, "together"));
  r.emit("aten::reshape", {back, r.out_dims()});
}

void microsoft_or_standard_attention(Recovery& r) {
  if (r.onnx().domain.empty()) return standard_attention(r);
  attention(r);
}

void biased_gelu(Recovery& r, std::string_view approximate) {
  const SlotId x = r.has(1) ? r.call("aten::add.Tensor", {r.tensor(0), r.tensor(1)}, named(r, "biased")) : r.tensor(0);
  r.emit("aten::gelu", {x, Text{std::string(approximate)}});
}
void bias_gelu(Recovery& r) { biased_gelu(r, "none"); }
void fast_gelu(Recovery& r) { biased_gelu(r, "tanh"); }

void quick_gelu(Recovery& r) {
  const SlotId scaled = r.call("aten::mul.Tensor", {r.tensor(0), r.onnx().real("alpha", 1.702)}, named(r, "scaled"));
  const SlotId gate = r.call("aten::sigmoid", {scaled}, named(r, "gate"));
  r.emit("aten::mul.Tensor", {r.tensor(0), gate});
}

void fused_matmul(Recovery& r) {
  const auto turned = [&](std::size_t i, std::string_view attribute) {
    const SlotId x = r.tensor(i);
    return r.onnx().integer(attribute, 0)
               ? r.call("aten::transpose.int", {x, std::int64_t{-2}, std::int64_t{-1}}, named(r, "turned"))
               : x;
  };
  const double alpha = r.onnx().real("alpha", 1.0);
  const SlotId a = turned(0, "transA"), b = turned(1, "transB");
  if (alpha == 1.0) return (void)r.emit("aten::matmul", {a, b});
  const SlotId product = r.call("aten::matmul", {a, b}, named(r, "product"));
  r.emit("aten::mul.Tensor", {product, alpha});
}

constexpr std::array list{
    OperatorHandler{"SkipLayerNormalization", skip_layer_norm},
    OperatorHandler{"SkipSimplifiedLayerNormalization", skip_rms_norm},
    OperatorHandler{"EmbedLayerNormalization", embed_layer_norm},
    OperatorHandler{"BiasGelu", bias_gelu},
    OperatorHandler{"FastGelu", fast_gelu},
    OperatorHandler{"QuickGelu", quick_gelu},
    OperatorHandler{"FusedMatMul", fused_matmul},
    OperatorHandler{"Attention", microsoft_or_standard_attention},
};

}  // namespace

OperatorFamily fused_operators() { return list; }

}  // namespace headroom::recovery
