#include "estimator/read/describe.h"

#include <cstdio>

#include "estimator/base/text.h"

namespace headroom {
namespace {

constexpr std::size_t shown_elements = 8;

std::string number(double value) {
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), "%g", value);
  return out.data();
}

template <class List, class Text>
std::string joined(const List& list, const Text& text_of_one, std::size_t limit = static_cast<std::size_t>(-1)) {
  std::string out;
  std::size_t i = 0;
  for (const auto& item : list) {
    if (i > 0) out += ", ";
    if (i++ == limit) return out + "… (" + std::to_string(list.size()) + ")";
    out += text_of_one(item);
  }
  return out;
}

std::string text_of(const TensorData& tensor) {
  return std::string(name_of(tensor.dtype)) + "[" +
         joined(tensor.dims, [](std::int64_t d) { return std::to_string(d); }) + "]";
}

std::string text_of(const Dim& dim) {
  if (!dim.param.empty()) return printable(dim.param);
  return dim.value >= 0 ? std::to_string(dim.value) : "?";
}

std::string text_of(const DeclaredType& type) {
  using Kind = DeclaredType::Kind;
  std::string tensor(type.dtype == DType::undefined ? "tensor" : name_of(type.dtype));
  if (type.has_shape) tensor += "[" + joined(type.dims, [](const Dim& d) { return text_of(d); }) + "]";
  switch (type.kind) {
    case Kind::unknown:
      return "?";
    case Kind::tensor:
      return tensor;
    case Kind::sparse_tensor:
      return "sparse " + tensor;
    case Kind::sequence:
      return "sequence(" + tensor + ")";
    case Kind::optional:
      return "optional(" + tensor + ")";
    case Kind::map:
      return "map";
  }
  return "?";
}

std::string_view text_of(TensorData::Where where) {
  switch (where) {
    case TensorData::Where::nowhere:
      return "no data";
    case TensorData::Where::raw:
    case TensorData::Where::decoded:
    case TensorData::Where::typed:
      return "in the file";
    case TensorData::Where::external:
      return "external";
  }
  return "";
}

std::string text_of(const Attribute& a) {
  using Kind = Attribute::Kind;
  switch (a.kind) {
    case Kind::none:
      return "?";
    case Kind::real:
      return number(a.real);
    case Kind::integer:
      return std::to_string(a.integer);
    case Kind::text:
      return "\"" + printable(a.text, 60) + "\"";
    case Kind::tensor:
      return a.tensor != nullptr ? text_of(*a.tensor) : "?";
    case Kind::graph:
      return "graph";
    case Kind::reals:
      return "[" +
             joined(
                 a.reals, [](float v) { return number(static_cast<double>(v)); }, shown_elements) +
             "]";
    case Kind::integers:
      return "[" +
             joined(
                 a.integers, [](std::int64_t v) { return std::to_string(v); }, shown_elements) +
             "]";
    case Kind::texts:
      return "[" +
             joined(
                 a.texts, [](std::string_view v) { return "\"" + printable(v, 60) + "\""; }, shown_elements) +
             "]";
    case Kind::tensors:
      return "[" +
             joined(
                 a.tensors, [](const TensorData& t) { return text_of(t); }, shown_elements) +
             "]";
    case Kind::graphs:
      return std::to_string(a.graphs.size()) + " graphs";
  }
  return "?";
}

class Writer {
 public:
  explicit Writer(const Model& model) : model_(model) {}

  std::string write() {
    line("file " + printable(model_.path.string(), 400) + ", IR " + std::to_string(model_.ir_version) + ", " +
         joined(model_.opsets,
                [](const auto& o) {
                  return "opset " + (o.first.empty() ? std::string() : printable(o.first) + " ") +
                         std::to_string(o.second);
                }) +
         (model_.producer.empty()
              ? std::string()
              : ", made by " + printable(model_.producer) + " " + printable(model_.producer_version)));
    graph(model_.graph());
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_.append(2 * depth_, ' ').append(text) += '\n'; }
  std::string name(ValueId value) const { return value.valid() ? "%" + printable(model_.name_of(value)) : "-"; }
  std::string names(std::span<const ValueId> values) const {
    return joined(values, [this](ValueId v) { return name(v); });
  }

  void graph(const Graph& graph) {
    line("graph " + printable(graph.name) + ": " + std::to_string(graph.nodes.size()) + " nodes");
    for (const GraphValue& v : graph.inputs) line("input " + name(v.value) + ": " + text_of(v.type));
    for (const Initializer& i : graph.initializers)
      line("initializer " + name(i.value) + ": " + text_of(i.tensor) + ", " +
           (i.sparse ? "sparse, " + std::to_string(i.stored_count) + " stored" : std::string(text_of(i.tensor.where))));
    for (const Node& n : graph.nodes) node(n);
    for (const GraphValue& v : graph.outputs) line("output " + name(v.value) + ": " + text_of(v.type));
  }

  void node(const Node& n) {
    std::string text = printable(n.name) + " " + (n.domain.empty() ? std::string() : printable(n.domain) + "::") +
                       printable(n.op_type);
    text += "(" + names(n.inputs) + ") -> " + names(n.outputs);
    if (!n.attributes.empty())
      text +=
          " {" + joined(n.attributes, [](const Attribute& a) { return printable(a.name) + "=" + text_of(a); }) + "}";
    if (!n.metadata.name_scopes.empty()) text += " @ " + printable(n.metadata.name_scopes, 200);
    line(text);
    ++depth_;
    for (const Attribute& a : n.attributes) {
      if (a.graph != nullptr) graph(*a.graph);
      for (const Graph* g : a.graphs) graph(*g);
    }
    --depth_;
  }

  const Model& model_;
  std::string out_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string describe(const Model& model) { return Writer(model).write(); }

}  // namespace headroom
