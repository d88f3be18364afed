#include "estimator/recover/modules/t5.h"

#include <functional>

#include "estimator/recover/casts.h"

namespace headroom::recovery {

SlotId cast_before_linear(Recovery& r, SlotId x, const Arg& weight) {
  const auto* w = std::get_if<SlotId>(&weight);
  if (!w || !r.path().ends_with("DenseReluDense.wo")) return x;
  const SlotId cast = call_to(r, x, DTypeOf{*w}, std::string(r.graph.name(r.out())) + ".input");
  r.last_is_statement(r.onnx().name);
  return cast;
}

namespace {

bool is_bias_table(const Recovery& r, NodeIndex n) {
  return r.graph.is(n, "Gather") && r.origins.module(n).ends_with(".relative_attention_bias");
}

}  // namespace

bool is_position_bias(const Recovery& r, ValueId v) {
  const GraphView& g = r.graph;
  NodeIndex n = g.producer(v);
  while (g.is(n, "Unsqueeze") || g.is(n, "Transpose")) n = g.producer(g.input(n, 0));
  return is_bias_table(r, n);
}

SlotId causal_bias(Recovery& r, ValueId bias) {
  const Dims& d = r.dims(bias);
  const std::int64_t queries = d[d.size() - 2], keys = d.back();
  const std::string name(r.graph.name(r.out()));
  const auto positions = [&](std::int64_t count, std::int64_t axis) {
    const SlotId all = r.call("aten::arange", {count, DType::i64}, name + ".positions");
    r.last_is_temporary();
    const SlotId view = r.call("aten::unsqueeze", {all, axis}, name + ".positions.view");
    r.last_is_temporary();
    return view;
  };
  const SlotId of_queries = positions(queries, 1);
  const SlotId of_keys = positions(keys, 0);
  const SlotId mask = r.call("aten::ge.Tensor", {of_queries, of_keys}, name + ".causal");
  r.last_is_temporary();
  const SlotId view = r.call("aten::view", {mask, Dims{1, 1, queries, keys}}, name + ".causal.view");
  r.last_is_temporary();
  constexpr double least = -3.4028234663852886e+38;
  return r.call("aten::where.ScalarOther", {view, r.tensor(bias), least}, name + ".bias");
}

namespace {

/// memory_position - context_position, of which the buckets are made; no_node: they are made otherwise.
NodeIndex distances(const GraphView& g, NodeIndex chosen) {
  NodeIndex n = g.producer(g.input(chosen, 1));
  if (g.is(n, "Neg")) n = g.producer(g.input(n, 0));
  if (!g.is(n, "Abs") && !g.is(n, "Min")) return no_node;
  n = g.producer(g.input(n, 0));
  return g.is(n, "Sub") ? n : no_node;
}

/// Node `n` runs as `op` with `args`, and a sum with zero after it.
void add_zero(Recovery& r, NodeIndex n, std::string_view op, std::function<Args()> args) {
  r.claim({n, r.graph.inputs(n), [&r, n, op, args = std::move(args)] {
             const SlotId x = r.call(op, args(), std::string(r.graph.name(r.graph.output(n))) + ".before");
             r.emit("aten::add.Tensor", {x, std::int64_t{0}}, r.graph.output(n));
           }});
}

}  // namespace

void plan_position_buckets(Recovery& r) {
  const GraphView& g = r.graph;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto table = static_cast<NodeIndex>(i);
    if (!is_bias_table(r, table)) continue;
    const NodeIndex last = g.producer(g.input(table, 1));
    NodeIndex chosen = last;
    if (g.is(last, "Add")) {
      if (g.number(g.input(last, 1)) || g.number(g.input(last, 0))) {
        chosen = g.producer(g.input(last, g.number(g.input(last, 0)) ? 1 : 0));
      } else {
        r.augmented.insert(last);
        chosen = g.producer(g.input(last, 1));
      }
    }
    if (!g.is(chosen, "Where")) continue;
    const NodeIndex sub = distances(g, chosen);
    if (sub == no_node) continue;
    if (chosen == last && r.is_free(chosen))
      add_zero(r, chosen, "aten::where.self", [&r] { return Args{r.tensor(0), r.tensor(1), r.tensor(2)}; });
    const NodeIndex context = g.producer(g.input(sub, 1));
    if (g.is(context, "Unsqueeze") && g.is(g.producer(g.input(context, 0)), "Range") && r.is_free(context))
      add_zero(r, context, "aten::unsqueeze", [&r] { return Args{r.tensor(0), std::int64_t{1}}; });
  }
}

}  // namespace headroom::recovery
