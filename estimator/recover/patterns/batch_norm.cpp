// Batch norm folded into the convolution before it: what an inference export of the TorchScript exporter does.
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

constexpr std::array list{Pattern{"Conv", find_folded}, Pattern{"ConvTranspose", find_folded}};

}  // namespace

PatternFamily batch_norm_patterns() { return list; }

}  // namespace headroom::recovery
