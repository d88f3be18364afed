#include "estimator/recover/graph_view.h"

#include <algorithm>

namespace headroom::recovery {

namespace {

/// An Identity that its text calls a clone is a call of its own.
bool is_seen_through(const Node& node) {
  return node.op_type == "Identity" && node.domain.empty() && node.metadata.fx_node.empty();
}

}  // namespace

GraphView::GraphView(const ShapedGraph& graph) : graph_(graph), by_name_({graph.model}) {
  const std::size_t values = graph.values.size();
  alias_.resize(values);
  producer_.assign(values, no_node);
  initializer_.assign(values, nullptr);
  is_output_.assign(values, false);
  input_index_.assign(values, -1);
  for (std::size_t v = 0; v < values; ++v) alias_[v] = graph.resolve(ValueId(v));

  // Topological order: the input of an Identity is already resolved when the Identity is met.
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = *graph.nodes[n].node;
    if (is_seen_through(node) && node.input(0).valid() && node.output(0).valid()) {
      alias_[node.outputs[0].at()] = alias_[node.inputs[0].at()];
      continue;
    }
    for (const ValueId o : node.outputs)
      if (o.valid()) producer_[o.at()] = static_cast<NodeIndex>(n);
  }
  for (std::size_t v = 0; v < values; ++v) alias_[v] = alias_[alias_[v].at()];

  reader_start_.assign(values + 1, 0);
  const auto for_each_read = [&](auto&& f) {
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = *graph.nodes[n].node;
      if (is_seen_through(node)) continue;
      for (const ValueId i : node.inputs)
        if (i.valid()) f(alias_[i.at()], static_cast<NodeIndex>(n));
    }
  };
  for_each_read([&](ValueId v, NodeIndex) { ++reader_start_[v.at() + 1]; });
  for (std::size_t v = 0; v < values; ++v) reader_start_[v + 1] += reader_start_[v];
  readers_.resize(static_cast<std::size_t>(reader_start_[values]));
  std::vector<std::int32_t> next(reader_start_.begin(), reader_start_.end() - 1);
  for_each_read([&](ValueId v, NodeIndex n) { readers_[static_cast<std::size_t>(next[v.at()]++)] = n; });

  for (const ValueId o : graph.outputs)
    if (o.valid()) is_output_[alias_[o.at()].at()] = true;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    input_index_[graph.inputs[i].value.at()] = static_cast<std::int32_t>(i);
  add_initializers(graph.model->graph());
}

void GraphView::add_initializers(const Graph& graph) {
  for (const Initializer& i : graph.initializers) {
    initializer_[i.value.at()] = &i;
    initializer_list_.push_back(&i);
  }
}

std::vector<ValueId> GraphView::inputs(NodeIndex n) const {
  std::vector<ValueId> out;
  out.reserve(node(n).inputs.size());
  for (const ValueId v : node(n).inputs) out.push_back(resolve(v));
  return out;
}

std::size_t GraphView::output_index(ValueId v) const {
  const auto outputs = node(producer(v)).outputs;
  return static_cast<std::size_t>(std::find(outputs.begin(), outputs.end(), resolve(v)) - outputs.begin());
}

std::span<const NodeIndex> GraphView::readers(ValueId v) const {
  const std::size_t i = resolve(v).at();
  const auto first = static_cast<std::size_t>(reader_start_[i]);
  return {readers_.data() + first, static_cast<std::size_t>(reader_start_[i + 1]) - first};
}

NodeIndex GraphView::only_reader(ValueId v) const {
  const auto r = readers(v);
  return r.size() == 1 && !is_output(v) ? r[0] : no_node;
}

const ShapedInput* GraphView::graph_input(ValueId v) const {
  if (!v.valid()) return nullptr;
  const auto i = input_index_[resolve(v).at()];
  return i < 0 ? nullptr : &graph_.inputs[static_cast<std::size_t>(i)];
}

ValueId GraphView::named(std::string_view wanted) const {
  if (by_name_.empty()) {
    by_name_.reserve(graph_.nodes.size() + graph_.inputs.size() + initializer_list_.size());
    for (const auto& i : graph_.inputs) by_name_.insert(i.value.index);
    for (const auto& n : graph_.nodes)
      for (const ValueId o : n.node->outputs)
        if (o.valid()) by_name_.insert(o.index);
    // Last: a node may have a parameter's name, which its text calls otherwise.
    for (const Initializer* i : initializer_list_) by_name_.insert(i->value.index);
  }
  return resolve(ValueId(by_name_.find(wanted)));
}

ValueId GraphView::other_input(NodeIndex n, ValueId v) const {
  const ValueId a = input(n, 0);
  return a == resolve(v) ? input(n, 1) : a;
}

bool GraphView::reads(NodeIndex n, ValueId v) const {
  for (const ValueId i : node(n).inputs)
    if (i.valid() && resolve(i) == resolve(v)) return true;
  return false;
}

std::optional<double> GraphView::number(ValueId v) const { return v.valid() ? value(v).number() : std::nullopt; }

const std::vector<std::int64_t>* GraphView::integers(ValueId v) const {
  if (!v.valid()) return nullptr;
  const ShapedValue& x = value(v);
  return x.contents && !is_float(x.dtype) ? &x.contents->integers : nullptr;
}

std::optional<Dims> GraphView::attribute_or_input(NodeIndex n, std::string_view attribute, std::size_t i) const {
  if (const auto* a = node(n).attribute(attribute)) return Dims(a->integers.begin(), a->integers.end());
  if (const auto* known = integers(input(n, i))) return Dims(known->begin(), known->end());
  return std::nullopt;
}

bool GraphView::is_weight(ValueId v) const { return v.valid() && is_stored(v) && is_float(value(v).dtype); }

}  // namespace headroom::recovery
