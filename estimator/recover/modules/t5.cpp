#include "estimator/recover/modules/t5.h"

#include "estimator/recover/casts.h"

namespace headroom::recovery {

SlotId cast_before_linear(Recovery& r, SlotId x, const Arg& weight) {
  const auto* w = std::get_if<SlotId>(&weight);
  if (!w || !r.path().ends_with("DenseReluDense.wo")) return x;
  const SlotId cast = call_to(r, x, DTypeOf{*w}, std::string(r.graph.name(r.out())) + ".input");
  r.last_is_statement(r.onnx().name);
  return cast;
}

}  // namespace headroom::recovery
