// nn.EmbeddingBag: the TorchScript exporter writes a Loop over the bags.
#include <array>

#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

/// The node of `body` that makes `v`; null when it comes from outside.
const Node* maker(const ShapedBody& body, ValueId v) {
  for (const ShapedNode& n : body.nodes)
    for (const ValueId o : n.node->outputs)
      if (o == v) return n.node;
  return nullptr;
}

std::optional<std::int64_t> mode_of_reduction(std::string_view op) {
  if (op == "ReduceSum") return 0;
  if (op == "ReduceMean") return 1;
  if (op == "ReduceMax") return 2;
  return std::nullopt;
}

/// A body that gathers rows of a weight at a stretch of the indices and reduces them; the stretch begins where the
/// offsets, with the number of indices behind them, say.
void find_bags(Recovery& r, NodeIndex loop) {
  const GraphView& g = r.graph;
  const ShapedNode& shaped = g.shaped_node(loop);
  if (shaped.bodies.size() != 1 || shaped.node->outputs.size() != 1) return;
  const ShapedBody& body = *shaped.bodies[0];
  for (const ShapedNode& n : body.nodes) {
    const auto mode = mode_of_reduction(n.node->op_type);
    if (!mode) continue;
    const Node* rows = maker(body, n.node->input(0));
    if (!rows || rows->op_type != "Gather" || !g.is_weight(rows->input(0), 2)) return;
    const Node* stretch = maker(body, rows->input(1));
    if (!stretch || stretch->op_type != "Slice" || maker(body, stretch->input(0))) return;
    const Node* start = maker(body, stretch->input(1));
    if (start && start->op_type == "Unsqueeze") start = maker(body, start->input(0));
    if (!start || start->op_type != "Gather") return;
    const NodeIndex ends = g.producer(start->input(0));
    if (!g.is(ends, "Concat")) return;
    const ValueId weight = g.resolve(rows->input(0)), indices = g.resolve(stretch->input(0)),
                  offsets = g.input(ends, 0);
    r.claim({loop, {weight, indices, offsets}, [&r, weight, indices, offsets, mode = *mode] {
               const std::string name(r.graph.name(r.out()));
               Args args{r.tensor(weight), r.tensor(indices), r.tensor(offsets), false, mode};
               const Slots results{r.builder.slot(name), {}, {}, {}};
               r.list_call("aten::embedding_bag", std::move(args), results);
               r.define(r.out(), results[0]);
             }});
    return;
  }
}

constexpr std::array list{Pattern{"Loop", find_bags}};

}  // namespace

PatternFamily embedding_bag_patterns() { return list; }

}  // namespace headroom::recovery
