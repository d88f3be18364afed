#include "estimator/recover/modules/weight_norm.h"

namespace headroom::recovery {

namespace {

NodeIndex reader_of(const GraphView& g, ValueId v, std::string_view op) {
  for (const NodeIndex n : g.readers(v))
    if (g.is(n, op)) return n;
  return no_node;
}

/// The one dimension that the norm keeps; nullopt when it keeps several or the norm is of another kind.
std::optional<std::int64_t> kept_dimension(const GraphView& g, NodeIndex norm) {
  const Dims& full = g.dims(g.input(norm, 0));
  const Dims& kept = g.dims(g.output(norm));
  if (full.size() != kept.size()) return std::nullopt;
  std::optional<std::int64_t> found;
  for (std::size_t d = 0; d < full.size(); ++d) {
    if (kept[d] == 1) continue;
    if (found) return std::nullopt;
    found = static_cast<std::int64_t>(d);
  }
  return found;
}

void plan_at(Recovery& r, NodeIndex norm) {
  const GraphView& g = r.graph;
  const ValueId v = g.input(norm, 0);
  const auto dim = kept_dimension(g, norm);
  const NodeIndex over = reader_of(g, g.output(norm), "Div");
  if (!dim || over == no_node || g.input(over, 1) != g.output(norm)) return;
  const NodeIndex product = g.only_reader(g.output(over));
  if (!g.is(product, "Mul")) return;
  // TorchScript: (v / norm) * g. Dynamo: v * (g / norm).
  const ValueId divided = g.input(over, 0), factor = g.other_input(product, g.output(over));
  const ValueId lengths = divided == v ? factor : divided;
  if ((divided != v && factor != v) || !g.is_weight(lengths) || g.dims(lengths) != g.dims(g.output(norm))) return;
  r.claim({product, {v, lengths}, [&r, v, lengths, dim = *dim, product] {
             r.emit("aten::_weight_norm", {r.tensor(v), r.tensor(lengths), dim}, r.graph.output(product));
           }});
}

}  // namespace

void plan_weight_norms(Recovery& r) {
  for (std::size_t i = 0; i < r.graph.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (r.graph.is(n, "ReduceL2") && r.graph.is_weight(r.graph.input(n, 0))) plan_at(r, n);
  }
}

}  // namespace headroom::recovery
