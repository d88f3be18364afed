// Batch norm without statistics of its own, and batch norm folded into the convolution before it: what an inference
// export of the TorchScript exporter does.
#include <array>

#include "estimator/recover/batch_norm.h"
#include "estimator/recover/convolution.h"
#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

/// A convolution whose weight lost its name and that has a bias without one: conv without bias, then batch norm with
/// four vectors of its own (the file merges equal biases, so they are made for each node).
void find_folded(Recovery& r, NodeIndex conv) {
  const GraphView& g = r.graph;
  const ValueId x = g.input(conv, 0), w = g.input(conv, 1), b = g.input(conv, 2);
  if (!b.valid() || !g.name(w).starts_with("onnx::Conv")) return;
  // With its own bias under its own name only the weight was folded: weight_norm or the like.
  if (g.name(b) == std::string(r.origins.module(conv)) + ".bias") return;
  const std::int64_t channels = output_channels(g, conv);
  r.claim({conv, {x}, [&r, conv, x, w, channels] {
             const std::string name(r.graph.name(r.out()));
             const SlotId weight = r.parameters.stored(w);
             r.parameters.name_weight_of(weight, r.path());
             const SlotId y = call_convolution(r, conv, r.tensor(x), weight, None{}, name + ".conv");
             r.last_is_statement(r.onnx().name);
             const std::string module = std::string(r.path()) + ".bn.";
             BatchNormOperands o;
             o.weight = r.parameters.restored(module + "weight", {channels}, DType::f32, false, weight);
             o.bias = r.parameters.restored(module + "bias", {channels}, DType::f32, false, o.weight);
             o.mean = r.parameters.restored(module + "running_mean", {channels}, DType::f32, true, o.bias);
             o.variance = r.parameters.restored(module + "running_var", {channels}, DType::f32, true, o.mean);
             r.define(r.out(), call_batch_norm(r, y, o, name));
             ++r.unfolded_batch_norms;
           }});
}

/// F.batch_norm(x, None, None, training=True): the exporter computes the statistics that the operator must be given.
void find_without_statistics(Recovery& r, NodeIndex norm) {
  const GraphView& g = r.graph;
  const ValueId x = g.input(norm, 0), mean = g.input(norm, 3), variance = g.input(norm, 4);
  if (!g.is(g.producer(mean), "ReduceMean") || g.producer(variance) == no_node) return;
  std::vector<ValueId> reads{x};
  ValueId affine[2];
  for (std::size_t i = 0; i < 2; ++i)
    if (const ValueId v = g.input(norm, i + 1); v.valid() && !affine_is_none(r, norm, i + 1)) {
      affine[i] = v;
      reads.push_back(v);
    }
  r.claim({norm, std::move(reads), [&r, x, w = affine[0], b = affine[1]] {
             const auto vector = [&](ValueId v) { return v.valid() ? Arg(r.tensor(v)) : Arg(None{}); };
             r.emit("aten::batch_norm", {r.tensor(x), vector(w), vector(b), None{}, None{}, true,
                                         1.0 - r.onnx().real("momentum", 0.9), r.onnx().real("epsilon", 1e-5), true});
           }});
}

constexpr std::array list{Pattern{"Conv", find_folded}, Pattern{"ConvTranspose", find_folded},
                          Pattern{"BatchNormalization", find_without_statistics}};

}  // namespace

PatternFamily batch_norm_patterns() { return list; }

}  // namespace headroom::recovery
