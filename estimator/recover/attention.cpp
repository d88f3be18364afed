#include "estimator/recover/attention.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "estimator/recover/modules/packed_sequence.h"
#include "estimator/recover/modules/t5.h"

namespace headroom::recovery {

namespace {

bool is_comparison(std::string_view op) {
  return op == "LessOrEqual" || op == "Less" || op == "Greater" || op == "GreaterOrEqual";
}

/// Bytes of a mask [B, 1, S, S] of `v`'s shape, as bool and as float.
Bytes mask_bytes(const GraphView& graph, ValueId v) { return Bytes(checked_mul(graph.value(v).count(), 5)); }

/// n of `positions - n`.
std::optional<std::int64_t> subtracted(const GraphView& graph, ValueId v) {
  const NodeIndex n = graph.producer(v);
  if (!graph.is(n, "Sub") && !graph.is(n, "Add")) return std::nullopt;
  const auto number = graph.number(graph.input(n, 1));
  if (!number) return std::nullopt;
  return static_cast<std::int64_t>(std::abs(*number));
}

}  // namespace

MaskOrigin mask_origin(const GraphView& graph, ValueId mask) {
  MaskOrigin origin;
  std::unordered_set<ValueId> seen;
  std::vector<ValueId> work{graph.resolve(mask)};
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    if (!v.valid() || !seen.insert(v).second) continue;
    const NodeIndex n = graph.producer(v);
    if (n == no_node) {
      if (graph.is_weight(v) && graph.dims(v).size() >= 2 && graph.value(v).count() > 1) origin.learned = true;
      if (graph.is_graph_input(v)) origin.inputs.push_back(v);
      continue;
    }
    const std::string_view op = graph.op(n);
    if (op == "Constant" || op == "Shape" || op == "Size") continue;
    if (op == "Trilu") origin.causal = true;
    if (is_comparison(op)) {
      const bool positions = !graph.number(graph.input(n, 0)) && !graph.number(graph.input(n, 1));
      if (positions && op == "LessOrEqual") {
        origin.causal = true;
      } else if (positions && op == "Greater") {
        origin.window = true;
        if (!origin.reach) origin.reach = subtracted(graph, graph.input(n, 1));
      } else {
        origin.comparison = true;
      }
    }
    if (op == "ConstantOfShape") {
      origin.constant_fill = true;
      continue;
    }
    if (seen.size() > 1 && (op == "Conv" || op == "LayerNormalization" || op == "Gemm" || op == "Softmax")) {
      origin.activation = true;
      continue;
    }
    if (op == "Mul" && is_float(graph.value(graph.output(n)).dtype)) {
      const auto is_plain = [&](ValueId side) {
        if (graph.value(side).count() == 1) return false;
        const MaskOrigin of_side = mask_origin(graph, side);
        return !of_side.causal && !of_side.window && !of_side.comparison && !of_side.activation &&
               !of_side.constant_fill && of_side.inputs.empty();
      };
      origin.distances = origin.distances || (is_plain(graph.input(n, 0)) && is_plain(graph.input(n, 1)));
    }
    for (const ValueId i : graph.inputs(n)) work.push_back(i);
  }
  return origin;
}

namespace {

/// A tensor [1, H, S, S] of one number: torch.zeros of an attention bias's shape.
bool is_filled(const GraphView& g, ValueId v) {
  if (g.dims(v).size() != 4) return false;
  const NodeIndex n = g.producer(v);
  return g.is(n, "ConstantOfShape") ||
         (g.is(n, "Expand") && g.value(g.input(n, 0)).count() == 1 && g.number(g.input(n, 0)));
}

/// A constant that says the same of every key: the folded comparison that a bidirectional model makes of no padding.
bool masks_no_key(const GraphView& g, ValueId v) {
  v = g.resolve(v);
  for (NodeIndex n = g.producer(v); g.is(n, "Expand") || g.is(n, "Unsqueeze"); n = g.producer(v))
    v = g.resolve(g.input(n, 0));
  return g.value(v).dtype == DType::b8 && g.is_stored(v) && !g.dims(v).empty() && g.dims(v).back() == 1;
}

/// `ids == pad`: padding that the model finds itself in what it is given, so in every run.
bool finds_padding(const GraphView& g, const MaskOrigin& origin) {
  return std::ranges::any_of(origin.inputs, [&](ValueId input) {
    const ShapedInput* const given = g.graph_input(input);
    return given && !is_mask_input(*given) && std::ranges::any_of(g.readers(input), [&](NodeIndex n) {
             return g.is(n, "Equal") && (g.number(g.input(n, 0)) || g.number(g.input(n, 1)));
           });
  });
}

MaskArgument decide_mask(Recovery& r, ValueId mask) {
  const GraphView& g = r.graph;
  MaskArgument out;
  const MaskOrigin origin = mask_origin(g, mask);
  const NodeIndex made_by = g.producer(mask);
  const bool is_where = g.is(made_by, "Where");
  // A padding mask is real only when the run passes it: bidirectional models need it, causal ones mostly run without.
  const bool given = !origin.inputs.empty();
  const bool real_padding = given && (!origin.causal || finds_padding(g, origin));
  if (origin.learned) {
    out.mask = g.resolve(mask);
    if (!is_where) return out;
    if (!origin.causal) {
      // where(mask, bias, min) without padding: the bias alone.
      if (!real_padding) r.replace(mask, g.input(made_by, 1));
      out.mask = r.replaced(mask);
    } else if (is_position_bias(r, g.input(made_by, 1))) {
      out.mask = g.input(made_by, 1);
      out.causal_bias = true;
    } else {
      const NodeIndex condition = g.producer(g.input(made_by, 0));
      if (g.is(condition, "Expand")) r.replace(g.output(condition), g.input(condition, 0));
    }
    return out;
  }
  if (origin.activation || origin.distances) {
    out.mask = g.resolve(mask);
    return out;
  }
  // transformers leaves a causal mask to the kernel only where its window is longer than the sequence.
  if (origin.causal && origin.window && origin.reach && !g.dims(mask).empty() && g.dims(mask).back() >= *origin.reach) {
    out.mask = g.resolve(mask);
    return out;
  }
  if (origin.causal && !real_padding) {
    out.causal = true;
    if (given && std::exchange(r.mask_input_ignored, true) == false) {
      r.diagnose("mask-input-ignored", Severity::info,
                 "the export needs an attention mask, the run is taken not to pass one (is_causal)",
                 mask_bytes(g, mask));
    }
    plan_packed_sequence_test(r, mask);
    return out;
  }
  if (masks_no_key(g, is_where ? g.input(made_by, 0) : mask)) return out;
  const bool nothing_dropped = !origin.comparison && !origin.window && !origin.constant_fill && origin.inputs.empty();
  if (real_padding || nothing_dropped) {
    // Where(mask, 0, -inf) is the conversion that the attention itself makes of a bool mask.
    const bool conversion = is_where && g.number(g.input(made_by, 1)) == 0.0;
    out.mask = conversion ? g.input(made_by, 0) : g.resolve(mask);
    return out;
  }
  if (is_where && is_filled(g, g.input(made_by, 1))) {
    // where(mask, zeros, min): T5's cross attention keeps the zeros.
    r.replace(mask, g.input(made_by, 1));
    out.mask = r.replaced(mask);
  }
  return out;
}

}  // namespace

MaskArgument mask_argument(Recovery& r, ValueId mask) {
  if (!mask.valid()) return {};
  const auto [it, fresh] = r.decided_masks.try_emplace(r.graph.resolve(mask));
  if (!fresh) return it->second;
  const MaskArgument decided = decide_mask(r, mask);
  return r.decided_masks[r.graph.resolve(mask)] = decided;
}

namespace {

/// Value under repeat_kv: Unsqueeze, Expand, Reshape.
ValueId before_repetition(const GraphView& g, ValueId v) {
  bool expanded = false, reshaped = false;
  NodeIndex n = g.producer(v);
  for (int steps = 0; steps < 7 && n != no_node; ++steps) {
    const std::string_view op = g.op(n);
    if (op == "Unsqueeze") return expanded && reshaped ? g.input(n, 0) : ValueId{};
    if (op == "Expand")
      expanded = true;
    else if (op == "Reshape")
      reshaped = true;
    else if (op != "Slice" && op != "Transpose" && op != "Identity")
      return {};
    n = g.producer(g.input(n, 0));
  }
  return {};
}

}  // namespace

void find_grouped_heads(Recovery& r, Attention& a) {
  if (a.mask.mask.valid()) {
    // A bias of zeros is made with the query's dtype.
    if (is_filled(r.graph, a.mask.mask)) r.made_like.try_emplace(a.mask.mask, a.query);
    return;
  }
  const GraphView& g = r.graph;
  const ValueId key = before_repetition(g, a.key), value = before_repetition(g, a.value);
  if (!key.valid() || !value.valid() || g.dims(key).size() != 4 || g.dims(value).size() != 4) return;
  a.key = key;
  a.value = value;
  a.key_is_transposed = false;
  a.key_order.clear();
  a.grouped = true;
}

std::vector<ValueId> reads_of(const Attention& a) { return {a.query, a.key, a.value, a.mask.mask}; }

namespace {

/// x.transpose(a, b) where two axes change places, else x.permute(order).
SlotId call_permute(Recovery& r, SlotId x, const Dims& order, std::string name) {
  Dims moved;
  for (std::size_t d = 0; d < order.size(); ++d)
    if (order[d] != static_cast<std::int64_t>(d)) moved.push_back(static_cast<std::int64_t>(d));
  if (moved.empty()) return x;
  if (moved.size() == 2) return r.call("aten::transpose.int", {x, moved[0], moved[1]}, std::move(name));
  return r.call("aten::permute", {x, order}, std::move(name));
}

}  // namespace

void call_attention(Recovery& r, const Attention& a, ValueId result) {
  const SlotId q = r.tensor(a.query);
  SlotId k = r.tensor(a.key);
  if (!a.key_order.empty()) {
    k = call_permute(r, k, a.key_order, std::string(r.graph.name(a.key)) + ".k");
  } else if (a.key_is_transposed)
    k = r.call("aten::transpose.int", {k, std::int64_t{-2}, std::int64_t{-1}}, std::string(r.graph.name(a.key)) + ".k");
  Arg mask = a.mask.mask.valid() ? Arg(r.tensor(a.mask.mask)) : Arg(None{});
  if (a.mask.causal_bias) mask = causal_bias(r, a.mask.mask);
  Args args{q, k, r.tensor(a.value), mask, r.options.training ? a.dropout : 0.0, a.causal || a.mask.causal};
  const Dims& query = r.dims(a.query);
  const double usual = query.empty() || query.back() == 0 ? 0 : 1.0 / std::sqrt(static_cast<double>(query.back()));
  const bool scaled = a.scale && std::abs(*a.scale - usual) > 1e-4 * usual;
  args.push_back(scaled ? Arg(*a.scale) : Arg(Unset{}));
  args.push_back(a.grouped ? Arg(true) : Arg(Unset{}));
  r.emit("aten::scaled_dot_product_attention", std::move(args), result);
}

NodeIndex through_casts(const GraphView& g, ValueId v) {
  NodeIndex n = g.producer(v);
  while (g.is(n, "Cast") || g.is(n, "CastLike")) n = g.producer(g.input(n, 0));
  return n;
}

namespace {

/// The square root of a scale that SDPA's decomposition multiplies into q and k.
bool is_scale_root(const GraphView& g, ValueId v) {
  if (g.number(v)) return true;
  return g.is(through_casts(g, v), "Sqrt");
}

}  // namespace

std::optional<ScoreProduct> score_product(const GraphView& g, NodeIndex softmax) {
  ScoreProduct out;
  ValueId scores = g.input(softmax, 0);
  NodeIndex n = through_casts(g, scores);
  if (g.is(n, "Add")) {
    const ValueId a = g.input(n, 0), b = g.input(n, 1);
    if (g.is(g.producer(a), "MatMul")) {
      out.mask = b;
      n = g.producer(a);
    } else if (g.is(g.producer(b), "MatMul")) {
      out.mask = a;
      n = g.producer(b);
    } else {
      return std::nullopt;
    }
  }
  if (!g.is(n, "MatMul")) return std::nullopt;
  const NodeIndex q = g.producer(g.input(n, 0)), k = g.producer(g.input(n, 1));
  out.query = g.input(n, 0);
  out.key = g.input(n, 1);
  if (g.is(q, "Mul") && g.is(k, "Mul")) {
    const auto side = [&](NodeIndex mul) -> std::pair<ValueId, ValueId> {
      const bool second = is_scale_root(g, g.input(mul, 1));
      return second ? std::pair(g.input(mul, 0), g.input(mul, 1)) : std::pair(g.input(mul, 1), g.input(mul, 0));
    };
    const auto [query, q_root] = side(q);
    const auto [key, k_root] = side(k);
    if (!is_scale_root(g, q_root) || !is_scale_root(g, k_root)) return std::nullopt;
    out.query = query;
    out.key = key;
    out.scaled_both = true;
    const auto a = g.number(q_root), b = g.number(k_root);
    if (a && b) out.scale = *a * *b;
  }
  // kᵀ as SDPA's decomposition writes it: one Transpose, or Reshape, Transpose, Reshape.
  const NodeIndex t = g.producer(out.key);
  const auto swaps_last_two = [&](NodeIndex node) {
    const auto perm = g.node(node).integers("perm");
    return perm.size() >= 2 && perm[perm.size() - 1] == static_cast<std::int64_t>(perm.size()) - 2 &&
           perm[perm.size() - 2] == static_cast<std::int64_t>(perm.size()) - 1;
  };
  if (g.is(t, "Transpose") && swaps_last_two(t)) {
    out.key = g.input(t, 0);
    out.key_is_transposed = false;
  } else if (const auto perm = t == no_node ? std::span<const std::int64_t>{} : g.node(t).integers("perm");
             g.is(t, "Transpose") && perm.size() >= 2) {
    out.key = g.input(t, 0);
    out.key_order.assign(perm.begin(), perm.end());
    std::swap(out.key_order[perm.size() - 1], out.key_order[perm.size() - 2]);
  } else if (g.is(t, "Reshape")) {
    const NodeIndex inner = g.producer(g.input(t, 0));
    if (g.is(inner, "Transpose") && swaps_last_two(inner) && g.is(g.producer(g.input(inner, 0)), "Reshape")) {
      out.key = g.input(g.producer(g.input(inner, 0)), 0);
      out.key_is_transposed = false;
    }
  }
  return out;
}

}  // namespace headroom::recovery
