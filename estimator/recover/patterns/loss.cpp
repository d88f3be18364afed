// Losses that a module computes itself.
#include <array>

#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

/// What an Expand to its own dims reads.
ValueId unexpanded(const GraphView& g, ValueId v) {
  const NodeIndex n = g.producer(v);
  return g.is(n, "Expand") && g.dims(g.input(n, 0)) == g.dims(v) ? g.input(n, 0) : v;
}

/// F.mse_loss: the TorchScript exporter writes the difference twice, and nobody else does.
void find_mse_loss(Recovery& r, NodeIndex product) {
  const GraphView& g = r.graph;
  const NodeIndex a = g.producer(g.input(product, 0)), b = g.producer(g.input(product, 1));
  if (a == b || !g.is(a, "Sub") || !g.is(b, "Sub") || g.input(a, 0) != g.input(b, 0) || g.input(a, 1) != g.input(b, 1))
    return;
  NodeIndex last = product;
  std::int64_t reduction = 0;  // at::Reduction: none, mean, sum
  if (const NodeIndex n = g.only_reader(g.output(product)); n != no_node && g.dims(g.output(n)).empty()) {
    reduction = g.is(n, "ReduceMean") ? 1 : g.is(n, "ReduceSum") ? 2 : 0;
    if (reduction) last = n;
  }
  if (!r.is_free(last)) return;
  const ValueId x = unexpanded(g, g.input(a, 0)), target = unexpanded(g, g.input(a, 1));
  r.claim({last, {x, target}, [&r, x, target, reduction] {
             r.emit("aten::mse_loss", {r.tensor(x), r.tensor(target), reduction});
           }});
}

constexpr std::array list{Pattern{"Mul", find_mse_loss}};

}  // namespace

PatternFamily loss_patterns() { return list; }

}  // namespace headroom::recovery
