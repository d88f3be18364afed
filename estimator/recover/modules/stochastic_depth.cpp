#include "estimator/recover/modules/stochastic_depth.h"

#include "estimator/recover/casts.h"

namespace headroom::recovery {

void claim_noise(Recovery& r, NodeIndex last, Dims size, double keep) {
  const ValueId noise = r.graph.output(last);
  if (!r.options.training) return skip_noise_in_eval(r, noise);
  r.claim({last, {}, [&r, size = std::move(size), keep, noise] {
             const std::string name(r.graph.name(noise));
             const SlotId empty =
                 r.call("aten::empty.memory_format", {size, stream_dtype_for(r, DType::f32)}, name + ".empty");
             const SlotId drawn = r.call("aten::bernoulli_.float", {empty, keep}, name + ".drawn");
             r.emit("aten::div_.Scalar", {drawn, keep}, noise);
           }});
}

void skip_noise_in_eval(Recovery& r, ValueId noise) {
  for (const NodeIndex mul : r.graph.readers(noise))
    if (r.graph.is(mul, "Mul")) r.replace(r.graph.output(mul), r.graph.other_input(mul, noise));
}

}  // namespace headroom::recovery
