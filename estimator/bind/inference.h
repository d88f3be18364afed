// Inference: one walk over the nodes, in which every value gets its shape.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "estimator/bind/node_shaper.h"
#include "estimator/bind/shaped_graph.h"

namespace headroom {

class Inference {
 public:
  explicit Inference(ShapedGraph& graph);

  /// Shapes the nodes of `graph`, whose inputs have their values, and appends those that run to `nodes`. Throws
  /// Error(bad_input).
  void shape(const Graph& graph, std::vector<ShapedNode>& nodes);

 private:
  void shape_node(const Node& node, std::vector<ShapedNode>& nodes);
  void check_outputs(const NodeShaper& op);

  // control_flow.cpp
  bool shape_control_flow(const NodeShaper& op, std::vector<ShapedNode>& nodes);
  void shape_if(const NodeShaper& op, std::vector<ShapedNode>& nodes);
  void shape_loop(const NodeShaper& op, std::vector<ShapedNode>& nodes);
  void shape_scan(const NodeShaper& op, std::vector<ShapedNode>& nodes);
  void shape_sequence_map(const NodeShaper& op, std::vector<ShapedNode>& nodes);
  struct Iteration;
  struct Outcome;
  Outcome iterate(const NodeShaper& op, Iteration& loop);
  std::shared_ptr<const ShapedBody> shape_body(const Graph& body);

  ShapedGraph& graph_;
  std::int64_t work_ = 0;  ///< nodes shaped so far, those of bodies as often as they were shaped
  std::int64_t most_work_;
  std::int64_t contents_ = 0;  ///< elements of the larger contents kept so far
  std::int64_t elements_ = 0;  ///< tensors in sequences so far
};

}  // namespace headroom
