// Losses that a module computes itself.
#include <array>
#include <vector>

#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

/// What Expands to its own dims read.
ValueId unexpanded(const GraphView& g, ValueId v) {
  for (NodeIndex n = g.producer(v); g.is(n, "Expand") && g.dims(g.input(n, 0)) == g.dims(v); n = g.producer(v))
    v = g.input(n, 0);
  return v;
}

/// Two losses are taken of the same two tensors, as those of a vector quantiser are: one of each is detached in either,
/// of which TorchScript keeps nothing. 0: no such loss; 1, 2: which of the two subtracts at `difference`.
int quantiser_loss(const GraphView& g, NodeIndex difference) {
  const ValueId a = unexpanded(g, g.input(difference, 0)), b = unexpanded(g, g.input(difference, 1));
  int all = 0, before = 0;
  const auto count = [&](NodeIndex n) {
    if (!g.is(n, "Sub") || !g.is(g.only_reader(g.output(n)), "Mul")) return;
    const ValueId x = unexpanded(g, g.input(n, 0)), y = unexpanded(g, g.input(n, 1));
    if (!(x == a && y == b) && !(x == b && y == a)) return;
    ++all;
    before += n < difference;
  };
  std::vector<ValueId> copies{a};  // and what Expands make of it
  for (std::size_t i = 0; i < copies.size(); ++i)
    for (const NodeIndex n : g.readers(copies[i])) {
      count(n);
      if (g.is(n, "Expand") && unexpanded(g, g.output(n)) == a) copies.push_back(g.output(n));
    }
  return all != 4 ? 0 : before < 2 ? 1 : 2;
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
  const int quantiser = quantiser_loss(g, a);
  r.claim({last, {x, target}, [&r, x, target, reduction, quantiser] {
             std::array operands{r.tensor(x), r.tensor(target)};
             if (quantiser) {
               SlotId& fixed = operands[(operands[0] < operands[1]) == (quantiser == 1) ? 0 : 1];
               fixed = r.call("aten::detach", {fixed}, std::string(r.graph.name(r.out())) + ".detached");
             }
             r.emit("aten::mse_loss", {operands[0], operands[1], reduction});
           }});
}

constexpr std::array list{Pattern{"Mul", find_mse_loss}};

}  // namespace

PatternFamily loss_patterns() { return list; }

}  // namespace headroom::recovery
