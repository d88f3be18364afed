#include "estimator/bind/describe.h"

#include <array>
#include <cstdio>
#include <string_view>

#include "estimator/base/text.h"

namespace headroom {
namespace {

constexpr std::size_t shown_elements = 8;

std::string number_text(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}
std::string number_text(std::int64_t value) { return std::to_string(value); }

template <class Elements>
std::string listed(const Elements& elements) {
  std::string s = " = {";
  for (std::size_t i = 0; i < elements.size() && i < shown_elements; ++i)
    s += (i ? ", " : "") + number_text(elements[i]);
  return s + (elements.size() > shown_elements ? ", …}" : "}");
}

std::string_view name_of(DimMeaning meaning) {
  switch (meaning) {
    case DimMeaning::batch:
      return "batch";
    case DimMeaning::sequence:
      return "sequence";
    case DimMeaning::past:
      return "past";
    case DimMeaning::spatial:
      return "spatial";
    case DimMeaning::unknown:
    case DimMeaning::other:
      break;
  }
  return "other";
}

void add_nodes(const ShapedGraph& graph, const std::vector<ShapedNode>& nodes, const std::string& indent,
               std::string& text) {
  for (const ShapedNode& node : nodes) {
    for (const ValueId output : node.node->outputs)
      if (output.valid())
        text += indent + printable(graph.model->name_of(output)) + ": " + describe(graph.at(output)) + "  (" +
                printable(node.node->op_type) + ")\n";
    for (const auto& body : node.bodies) {
      text += indent + "  body " + printable(body->graph->name);
      if (node.trip_count_is_bound || node.trip_count != 1)
        text += (node.trip_count_is_bound ? ", at most " : ", ") + std::to_string(node.trip_count) + " times";
      text += "\n";
      add_nodes(graph, body->nodes, indent + "    ", text);
    }
  }
}

}  // namespace

std::string describe(const ShapedValue& value) {
  switch (value.kind) {
    case ShapedValue::Kind::unknown:
      return "unknown";
    case ShapedValue::Kind::optional_none:
      return "none";
    case ShapedValue::Kind::sequence: {
      std::string s = "sequence {";
      for (std::size_t i = 0; i < value.elements->size() && i < shown_elements; ++i)
        s += (i ? ", " : "") + describe((*value.elements)[i]);
      return s + (value.elements->size() > shown_elements ? ", …}" : "}");
    }
    case ShapedValue::Kind::tensor:
      break;
  }
  std::string s =
      std::string(headroom::name_of(value.dtype)) + " " + (value.upper_bound ? "~" : "") + text_of(value.dims);
  if (value.contents) s += is_float(value.dtype) ? listed(value.contents->reals) : listed(value.contents->integers);
  return s;
}

std::string describe(const ShapedGraph& graph) {
  std::string text;
  for (const BoundDim& d : graph.dims)
    text += "dim " + printable(d.name) + " = " + std::to_string(d.value) + "  (" + std::string(name_of(d.meaning)) +
            ", " + printable(d.source) + ")\n";
  for (const ShapedInput& i : graph.inputs)
    text += "input " + printable(i.name) + ": " + describe(graph.at(i.value)) + "\n";
  add_nodes(graph, graph.nodes, "", text);
  for (const ValueId output : graph.outputs)
    text += "output " + printable(graph.model->name_of(output)) + ": " + describe(graph.at(output)) + "\n";
  return text;
}

}  // namespace headroom
