#include "estimator/recover/operators/operators.h"

#include <unordered_map>

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

const std::unordered_map<std::string_view, void (*)(Recovery&)>& handlers() {
  static const auto table = [] {
    std::unordered_map<std::string_view, void (*)(Recovery&)> out;
    for (const OperatorFamily family :
         {arithmetic_operators(), comparison_operators(), activation_operators(), shape_operators(),
          indexing_operators(), creation_operators(), reduction_operators(), matrix_operators(),
          convolution_operators(), pooling_operators(), normalization_operators(), cast_operators(), image_operators(),
          sequence_operators(), quantized_operators(), fused_operators(), loss_operators()})
      for (const OperatorHandler& h : family) out.emplace(h.op_type, h.lower);
    return out;
  }();
  return table;
}

}  // namespace

void lower_operator(Recovery& r) {
  const Node& node = r.onnx();
  const auto& table = handlers();
  if (const auto it = table.find(node.op_type); it != table.end()) return it->second(r);
  Bytes bound;
  for (const ValueId o : node.outputs) {
    if (!o.valid() || !r.graph.value(o).is_tensor()) continue;
    r.emit("aten::empty.memory_format", {r.graph.dims(o), r.dtype(o)}, o);
    bound += bytes_of(r.dtype(o), r.graph.value(o).count());
  }
  r.diagnose("operator-by-bound", Severity::warning,
             "operator " + std::string(node.op_type) + " is counted by its outputs; what it saves is not known", bound);
}

}  // namespace headroom::recovery
