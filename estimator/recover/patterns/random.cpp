// Stochastic depth and in-place dropout in graphs without text.
#include <algorithm>
#include <array>

#include "estimator/recover/modules/stochastic_depth.h"
#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

/// RandomUniformLike, Less, Cast, Div: bernoulli_ and div_ of one small tensor.
void find_noise(Recovery& r, NodeIndex less) {
  const GraphView& g = r.graph;
  const NodeIndex random = g.producer(g.input(less, 0));
  if (!g.is(random, "RandomUniformLike") && !g.is(random, "RandomUniform")) return;
  const double keep = g.number(g.input(less, 1)).value_or(0.9);
  NodeIndex last = less;
  // torch.rand(n) < p chooses.
  if (std::ranges::all_of(g.readers(g.output(less)), [&](NodeIndex n) { return g.is(n, "Where") || g.is(n, "Not"); }))
    return;
  if (const NodeIndex cast = g.only_reader(g.output(last)); g.is(cast, "Cast") || g.is(cast, "CastLike")) last = cast;
  if (const NodeIndex div = g.only_reader(g.output(last)); g.is(div, "Div") && g.number(g.input(div, 1))) last = div;
  claim_noise(r, last, g.dims(g.output(last)), keep);
}

constexpr std::array list{Pattern{"Less", find_noise}};

}  // namespace

PatternFamily random_patterns() { return list; }

}  // namespace headroom::recovery
