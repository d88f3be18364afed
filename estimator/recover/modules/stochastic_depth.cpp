#include "estimator/recover/modules/stochastic_depth.h"

#include "estimator/recover/casts.h"

namespace headroom::recovery {

void claim_noise(Recovery& r, NodeIndex last, Dims size, double keep) {
  const ValueId noise = r.graph.output(last);
  r.claim({last, {}, [&r, size = std::move(size), keep, noise] {
             const std::string name(r.graph.name(noise));
             const SlotId empty =
                 r.call("aten::empty.memory_format", {size, stream_dtype_for(r, DType::f32)}, name + ".empty");
             const SlotId drawn = r.call("aten::bernoulli_.float", {empty, keep}, name + ".drawn");
             r.emit("aten::div_.Scalar", {drawn, keep}, noise);
           }});
}

namespace {

/// What a module with noise returns in eval mode, at the product with `noise`: the other factor, undivided.
void see_through(Recovery& r, ValueId noise) {
  const GraphView& g = r.graph;
  for (const NodeIndex mul : g.readers(noise)) {
    if (!g.is(mul, "Mul")) continue;
    ValueId kept = g.other_input(mul, noise);
    const NodeIndex div = g.producer(kept);
    if (g.is(div, "Div") && g.number(g.input(div, 1)) && r.origins.same_scope(div, mul)) kept = g.input(div, 0);
    r.replace(g.output(mul), kept);
  }
}

}  // namespace

void plan_noise_in_eval(Recovery& r) {
  if (r.options.training) return;
  const GraphView& g = r.graph;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto random = static_cast<NodeIndex>(i);
    if (!g.is(random, "RandomUniformLike") && !g.is(random, "RandomUniform")) continue;
    // RandomUniformLike, Less, Cast, Div or RandomUniformLike, Add, Floor.
    ValueId noise = g.output(random);
    for (int steps = 0; steps < 4; ++steps) {
      const auto readers = g.readers(noise);
      if (readers.size() != 1 || g.is(readers[0], "Mul")) break;
      noise = g.output(readers[0]);
    }
    see_through(r, noise);
  }
}

}  // namespace headroom::recovery
