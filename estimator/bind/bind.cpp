// The bind stage: dims of the inputs first, then every shape that follows.
#include "estimator/bind/dim_binding.h"
#include "estimator/bind/inference.h"
#include "estimator/bind/shaped_graph.h"

namespace headroom {

ShapedGraph bind(const Model& model, const Bindings& bindings) {
  ShapedGraph graph;
  graph.model = &model;
  graph.values.resize(model.value_count());
  graph.same_as.resize(model.value_count());
  for (std::size_t i = 0; i < graph.same_as.size(); ++i) graph.same_as[i] = ValueId(i);
  bind_inputs(graph, bindings);
  Inference(graph).shape(model.graph(), graph.nodes);
  for (const GraphValue& output : model.graph().outputs) graph.outputs.push_back(output.value);
  return graph;
}

}  // namespace headroom
