#include "estimator/bind/inference.h"

#include <string>

#include "estimator/base/error.h"
#include "estimator/bind/contents.h"
#include "estimator/bind/operators/families.h"
#include "estimator/bind/size_limits.h"

namespace headroom {
namespace {

/// Bodies are shaped again for iterations that differ; beyond this much extra work a file is not worth it.
constexpr std::int64_t most_extra_work = 2'000'000;
/// Memory is bounded too: contents beyond a few numbers are kept up to this many elements in all, sequences up to this
/// many tensors.
constexpr std::int64_t small_contents = 64;
constexpr std::int64_t most_contents = 4'000'000;
constexpr std::int64_t most_elements = 500'000;

[[noreturn]] void fail_unknown(const NodeShaper& op) {
  const Node& node = op.node();
  const std::string name(node.op_type);
  const std::string_view near = nearest_operator(node.op_type);
  bool known_domain = node.domain.empty();
  for (const auto& family : operator_families()) known_domain = known_domain || family.domain == node.domain;
  std::string hint = "if the operator is your own, make it a model-local function, or export with standard operators";
  if (known_domain && !near.empty() && near != node.op_type) hint = "did you mean " + std::string(near) + "?";
  if (shape_rule("", node.op_type)) hint = "the standard domain has an operator " + name;
  throw bad_input("unknown operator \"" + name + "\"" +
                      (node.domain.empty() ? "" : " of the domain \"" + std::string(node.domain) + "\""),
                  op.where(), hint);
}

}  // namespace

Inference::Inference(ShapedGraph& graph)
    : graph_(graph), most_work_(static_cast<std::int64_t>(graph.values.size()) + most_extra_work) {}

void Inference::shape(const Graph& graph, std::vector<ShapedNode>& nodes) {
  for (const Initializer& initializer : graph.initializers) {
    ShapedValue& value = graph_.values[initializer.value.at()];
    if (value.kind != ShapedValue::Kind::unknown) continue;  // of a body that is shaped again
    value = value_of(*graph_.model, initializer.tensor);
    if (const std::string problem = size_problem(value.dtype, value.dims); !problem.empty())
      throw bad_input("the initializer " + std::string(graph_.model->name_of(initializer.value)) + " is " +
                          text_of(value.dims) + ", " + problem,
                      graph_.model->path.filename().string(), "the file is damaged, or not what its exporter meant");
  }
  nodes.reserve(nodes.size() + graph.nodes.size());
  for (const Node& node : graph.nodes) shape_node(node, nodes);
}

void Inference::shape_node(const Node& node, std::vector<ShapedNode>& nodes) {
  const NodeShaper op(node, graph_);
  if (++work_ > most_work_) op.fail("the loops around it are too deep and too long to be followed");
  try {
    if (const ShapeRule rule = shape_rule(node.domain, node.op_type)) {
      rule(op);
      nodes.push_back({&node, {}, 1, false});
    } else if (!node.domain.empty() || !shape_control_flow(op, nodes)) {
      fail_unknown(op);
    }
  } catch (const SizeOverflow&) {
    op.fail("a size does not fit in 64 bits");
  }
  check_outputs(op);
}

/// What comes from a bound is a bound, but for scalars; nothing stays without a shape; memory stays bounded.
void Inference::check_outputs(const NodeShaper& op) {
  bool bounded = false;
  const bool keeps_shape = op.node().op_type.starts_with("Scatter");  // of what is written into
  for (const ValueId input : op.node().inputs) {
    bounded = bounded || (input.valid() && graph_.at(input).upper_bound);
    if (keeps_shape) break;
  }
  for (std::size_t i = 0; i < op.output_count(); ++i) {
    const ValueId output = op.node().outputs[i];
    if (!output.valid() || graph_.same_as[output.at()] != output) continue;
    ShapedValue& value = graph_.values[output.at()];
    if (value.kind == ShapedValue::Kind::unknown) op.fail("the operator has no output " + std::to_string(i));
    if (bounded && (!value.dims.empty() || value.contents)) value.upper_bound = true;
    if (value.contents && value.contents.use_count() == 1 && value.count() > small_contents) {
      if (contents_ + value.count() > most_contents)
        value.contents = nullptr;
      else
        contents_ += value.count();
    }
    if (value.elements && value.elements.use_count() == 1) {
      elements_ += std::ssize(*value.elements);
      if (elements_ > most_elements) op.fail("the model's sequences are too long to be followed");
    }
  }
}

}  // namespace headroom
