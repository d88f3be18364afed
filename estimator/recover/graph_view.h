// GraphView: who makes a value and who reads it. Resolved Ifs and Identity nodes without text are seen through.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "estimator/base/name_index.h"
#include "estimator/bind/shaped_graph.h"

namespace headroom::recovery {

using NodeIndex = std::int32_t;
inline constexpr NodeIndex no_node = -1;

class GraphView {
 public:
  explicit GraphView(const ShapedGraph& graph);

  const ShapedGraph& shaped() const { return graph_; }
  const Model& model() const { return *graph_.model; }
  std::size_t size() const { return graph_.nodes.size(); }
  const Node& node(NodeIndex n) const { return *graph_.nodes[static_cast<std::size_t>(n)].node; }
  const ShapedNode& shaped_node(NodeIndex n) const { return graph_.nodes[static_cast<std::size_t>(n)]; }
  std::string_view op(NodeIndex n) const { return n == no_node ? std::string_view{} : node(n).op_type; }
  bool is(NodeIndex n, std::string_view op_type) const { return n != no_node && node(n).op_type == op_type; }

  /// The value that `v` stands for once Identity and If are seen through.
  ValueId resolve(ValueId v) const { return v.valid() ? alias_[v.at()] : v; }
  ValueId input(NodeIndex n, std::size_t i) const { return resolve(node(n).input(i)); }
  /// Inputs of a node, resolved; absent ones are invalid.
  std::vector<ValueId> inputs(NodeIndex n) const;
  ValueId output(NodeIndex n) const { return node(n).output(0); }

  /// Node that makes `v`; no_node for inputs and initializers.
  NodeIndex producer(ValueId v) const { return v.valid() ? producer_[resolve(v).at()] : no_node; }
  /// Index of `v` among its producer's outputs.
  std::size_t output_index(ValueId v) const;
  std::string_view producer_op(ValueId v) const { return op(producer(v)); }
  /// Nodes that read `v`, each once for every time it reads it, in order.
  std::span<const NodeIndex> readers(ValueId v) const;
  /// The only node that reads `v`, if `v` is no output of the graph.
  NodeIndex only_reader(ValueId v) const;
  bool is_output(ValueId v) const { return is_output_[resolve(v).at()]; }
  bool is_graph_input(ValueId v) const { return v.valid() && input_index_[resolve(v).at()] >= 0; }
  const ShapedInput* graph_input(ValueId v) const;

  const Initializer* initializer(ValueId v) const { return v.valid() ? initializer_[resolve(v).at()] : nullptr; }
  const ShapedValue& value(ValueId v) const { return graph_.values[resolve(v).at()]; }
  const Dims& dims(ValueId v) const { return value(v).dims; }
  std::string_view name(ValueId v) const { return model().name_of(v); }
  /// The value of this name, or an invalid id.
  ValueId named(std::string_view name) const;

  /// The other input of a node with two.
  ValueId other_input(NodeIndex n, ValueId v) const;
  bool reads(NodeIndex n, ValueId v) const;
  /// The one number a known value holds.
  std::optional<double> number(ValueId v) const;
  const std::vector<std::int64_t>* integers(ValueId v) const;
  /// Axes or sizes that older opsets keep in an attribute and newer ones in an input; null when neither says.
  std::optional<Dims> attribute_or_input(NodeIndex n, std::string_view attribute, std::size_t input) const;

  /// An initializer, or a Constant node that holds a tensor.
  bool is_stored(ValueId v) const { return initializer(v) || producer_op(v) == "Constant"; }
  /// A floating-point tensor stored in the file.
  bool is_weight(ValueId v) const;
  bool is_weight(ValueId v, std::size_t rank) const { return is_weight(v) && dims(v).size() == rank; }

  const std::vector<const Initializer*>& initializers() const { return initializer_list_; }

 private:
  void add_initializers(const Graph& graph);

  const ShapedGraph& graph_;
  std::vector<ValueId> alias_;
  std::vector<NodeIndex> producer_;
  std::vector<std::int32_t> reader_start_;
  std::vector<NodeIndex> readers_;
  std::vector<bool> is_output_;
  std::vector<std::int32_t> input_index_;
  std::vector<const Initializer*> initializer_;
  std::vector<const Initializer*> initializer_list_;
  struct NameOfValue {
    const Model* model;
    std::string_view operator()(std::int32_t v) const { return model->name_of(ValueId(v)); }
  };
  mutable NameIndex<NameOfValue> by_name_;
};

}  // namespace headroom::recovery
