#include "tests/bind/case_text.h"

#include <onnx-ml.pb.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "estimator/base/text.h"

namespace headroom::test {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 18> types = {{{"f32", DType::f32},
                                                                       {"f16", DType::f16},
                                                                       {"bf16", DType::bf16},
                                                                       {"f64", DType::f64},
                                                                       {"i64", DType::i64},
                                                                       {"i32", DType::i32},
                                                                       {"i16", DType::i16},
                                                                       {"i8", DType::i8},
                                                                       {"i4", DType::i4},
                                                                       {"u8", DType::u8},
                                                                       {"u16", DType::u16},
                                                                       {"u32", DType::u32},
                                                                       {"u64", DType::u64},
                                                                       {"u4", DType::u4},
                                                                       {"b8", DType::b8},
                                                                       {"c64", DType::c64},
                                                                       {"f8", DType::f8e4m3fn},
                                                                       {"str", DType::string}}};

DType type_named(std::string_view name) {
  for (const auto& [n, t] : types)
    if (n == name) return t;
  return DType::undefined;
}

class Parser {
 public:
  explicit Parser(std::string_view line) : line_(line), rest_(line) {}

  Case whole() {
    bindings();
    onnx::ModelProto model;
    model.set_ir_version(10);
    model.add_opset_import()->set_version(opset_);
    for (const char* domain : {"ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "com.microsoft", "x"}) {
      auto* import = model.add_opset_import();
      import->set_domain(domain);
      import->set_version(1);
    }
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.set_name("g");
    graph_ = &graph;
    statements(graph);
    expect("->");
    results();
    onnx::NodeProto& last = *graph.mutable_node(graph.node_size() - 1);
    if (last.output_size() == 0)
      for (std::size_t i = 0; i < std::max<std::size_t>(case_.expected.size(), 1); ++i)
        last.add_output("y" + std::to_string(i));
    for (const std::string& o : last.output())
      if (!o.empty()) graph.add_output()->set_name(o);
    case_.file = model.SerializeAsString();
    return std::move(case_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("case \"" + std::string(line_) + "\": " + why + " at \"" + std::string(rest_) + "\"");
  }
  void blanks() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail("expected " + std::string(token));
  }
  bool ahead(std::string_view token) {
    blanks();
    return rest_.starts_with(token);
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  }
  std::string word() {
    blanks();
    std::size_t n = 0;
    while (n < rest_.size() && is_word(rest_[n])) ++n;
    if (n == 0) fail("expected a name");
    return taken(n);
  }
  std::string taken(std::size_t n) {
    std::string s(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return s;
  }
  std::string number() {
    blanks();
    std::size_t n = 0;
    while (n < rest_.size() && (is_word(rest_[n]) || rest_[n] == '-' || rest_[n] == '+')) ++n;
    if (n == 0) fail("expected a number");
    return taken(n);
  }
  static bool is_real(std::string_view text) { return text.find_first_of(".eni") != std::string_view::npos; }

  /// "--batch 2 --shape x=2x3 --opset 11 |"
  void bindings() {
    const auto bar = line_.find(" | ");
    if (!ahead("--") || bar == std::string_view::npos) return;
    std::istringstream words{std::string(line_.substr(0, bar))};
    std::string option, text;
    while (words >> option >> text) {
      const auto at = text.find('=');
      if (option == "--batch") {
        case_.bindings.batch = parse_int(text);
      } else if (option == "--seq") {
        case_.bindings.sequence = parse_int(text);
      } else if (option == "--dim") {
        case_.bindings.dims[text.substr(0, at)] = parse_int(text.substr(at + 1)).value();
      } else if (option == "--shape") {
        auto& shape = case_.bindings.shapes[text.substr(0, at)];
        for (const auto part : split(std::string_view(text).substr(at + 1), 'x'))
          shape.push_back(parse_int(part).value());
      } else if (option == "--opset") {
        opset_ = parse_int(text).value();
      } else {
        fail("unknown option");
      }
    }
    rest_ = line_.substr(bar + 3);
  }

  void statements(onnx::GraphProto& graph) {
    do {
      std::vector<std::string> names;
      const std::string_view before = rest_;
      blanks();
      if (!rest_.empty() && is_word(rest_[0])) {
        do names.push_back(word());
        while (take(","));
        if (ahead("=") && !ahead("==")) {
          expect("=");
        } else {
          rest_ = before;
          names.clear();
        }
      }
      const std::string_view at = rest_;
      if (names.size() == 1 && type_named(word()) != DType::undefined) {
        rest_ = at;
        literal(names[0]);
        continue;
      }
      rest_ = at;
      call(graph, names);
    } while (take(";"));
  }

  void call(onnx::GraphProto& graph, const std::vector<std::string>& outputs) {
    onnx::NodeProto node;
    std::string name = word();
    if (take("::")) {
      node.set_domain(name);
      name = word();
    }
    node.set_op_type(name);
    node.set_name("node of " + name);
    case_.operators.push_back(node.domain() + "::" + name);
    if (take("<")) {
      do attribute(*node.add_attribute());
      while (take(","));
      expect(">");
    }
    expect("(");
    if (!take(")")) {
      do node.add_input(argument());
      while (take(","));
      expect(")");
    }
    for (const auto& o : outputs) node.add_output(o == "_" ? "" : o);
    *graph.add_node() = node;
  }

  std::string argument() {
    blanks();
    if (take("_")) return {};
    const std::string_view before = rest_;
    const std::string name = word();
    if (type_named(name) == DType::undefined) return name;
    rest_ = before;
    const std::string fresh = "in" + std::to_string(fresh_++);
    literal(fresh);
    return fresh;
  }

  /// A graph input, or an initializer when it has elements; always of the main graph.
  void literal(const std::string& name) {
    onnx::TensorProto tensor;
    onnx::TypeProto::Tensor type;
    if (tensor_literal(tensor, type)) {
      tensor.set_name(name);
      *graph_->add_initializer() = tensor;
      return;
    }
    auto* input = graph_->add_input();
    input->set_name(name);
    *input->mutable_type()->mutable_tensor_type() = type;
  }

  /// True when the literal has elements.
  bool tensor_literal(onnx::TensorProto& tensor, onnx::TypeProto::Tensor& type) {
    const DType dtype = type_named(word());
    type.set_elem_type(static_cast<int>(dtype));
    tensor.set_data_type(static_cast<int>(dtype));
    bool has_dims = false;
    if (take("[")) {
      has_dims = true;
      auto* shape = type.mutable_shape();
      while (!take("]")) {
        auto* dim = shape->add_dim();
        blanks();
        const std::string text = taken(rest_.find_first_of(",]"));
        if (text == "?") {
          // No number and no name.
        } else if (const auto value = parse_int(text)) {
          dim->set_dim_value(*value);
          tensor.add_dims(*value);
        } else {
          dim->set_dim_param(text);
        }
        take(",");
      }
    }
    if (!ahead("{") && !ahead("(")) return false;
    const bool scalar = ahead("(");
    expect(scalar ? "(" : "{");
    std::vector<std::string> elements;
    while (!take(scalar ? ")" : "}")) {
      elements.push_back(number());
      take(",");
    }
    if (!scalar && !has_dims) tensor.add_dims(static_cast<std::int64_t>(elements.size()));
    for (const auto& e : elements) add_element(tensor, dtype, e);
    return true;
  }

  static void add_element(onnx::TensorProto& tensor, DType dtype, const std::string& text) {
    const double real = std::stod(text);
    switch (dtype) {
      case DType::f32:
        tensor.add_float_data(static_cast<float>(real));
        break;
      case DType::f64:
        tensor.add_double_data(real);
        break;
      case DType::i64:
        tensor.add_int64_data(parse_int(text).value());
        break;
      default:
        tensor.add_int32_data(static_cast<std::int32_t>(real));
        break;
    }
  }

  void attribute(onnx::AttributeProto& a) {
    a.set_name(word());
    expect("=");
    blanks();
    if (ahead("\"")) {
      a.set_type(onnx::AttributeProto::STRING);
      a.set_s(quoted());
    } else if (take("[")) {
      list(a);
    } else if (ahead("{")) {
      a.set_type(onnx::AttributeProto::GRAPH);
      body(*a.mutable_g());
    } else if (const std::string_view before = rest_; type_named(number()) != DType::undefined) {
      rest_ = before;
      onnx::TypeProto::Tensor type;
      a.set_type(onnx::AttributeProto::TENSOR);
      tensor_literal(*a.mutable_t(), type);
    } else {
      rest_ = before;
      const std::string text = number();
      if (is_real(text)) {
        a.set_type(onnx::AttributeProto::FLOAT);
        a.set_f(std::stof(text));
      } else {
        a.set_type(onnx::AttributeProto::INT);
        a.set_i(parse_int(text).value());
      }
    }
  }

  void list(onnx::AttributeProto& a) {
    a.set_type(onnx::AttributeProto::INTS);
    while (!take("]")) {
      if (ahead("\"")) {
        a.set_type(onnx::AttributeProto::STRINGS);
        a.add_strings(quoted());
      } else {
        const std::string text = number();
        if (is_real(text)) {
          a.set_type(onnx::AttributeProto::FLOATS);
          a.add_floats(std::stof(text));
        } else {
          a.add_ints(parse_int(text).value());
        }
      }
      take(",");
    }
  }

  std::string quoted() {
    expect("\"");
    const std::string text = taken(rest_.find('"'));
    expect("\"");
    return text;
  }

  void body(onnx::GraphProto& g) {
    expect("{");
    g.set_name("body");
    for (const auto& name : names()) g.add_input()->set_name(name);
    expect("->");
    if (!ahead("->")) statements(g);
    expect("->");
    for (const auto& name : names()) g.add_output()->set_name(name);
    expect("}");
  }

  std::vector<std::string> names() {
    std::vector<std::string> all;
    expect("(");
    while (!take(")")) {
      all.push_back(word());
      take(",");
    }
    return all;
  }

  /// "f32[2], ~i64[3]{1,2,3} says code code", or "error 3: part".
  void results() {
    blanks();
    if (take("error")) {
      case_.error = static_cast<int>(parse_int(number()).value());
      expect(":");
      case_.error_part = std::string(trim(rest_));
      return;
    }
    const auto says = rest_.find(" says ");
    if (says != std::string_view::npos) {
      for (const auto code : split(trim(rest_.substr(says + 6)), ' ')) case_.says.emplace_back(code);
      rest_ = rest_.substr(0, says);
    }
    int depth = 0;
    std::string one;
    for (const char c : rest_) {
      if (c == ' ') continue;
      depth += (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
      if (c == ',' && depth == 0) {
        case_.expected.push_back(std::move(one));
        one.clear();
      } else {
        one += c;
      }
    }
    case_.expected.push_back(std::move(one));
  }

  std::string_view line_;
  std::string_view rest_;
  Case case_;
  onnx::GraphProto* graph_ = nullptr;
  std::int64_t opset_ = 21;
  int fresh_ = 0;
};

template <class Elements>
std::string listed(const Elements& elements) {
  std::ostringstream s;
  for (std::size_t i = 0; i < elements.size(); ++i) s << (i ? "," : "") << elements[i];
  return "{" + s.str() + "}";
}

}  // namespace

Case parse_case(std::string_view line) { return Parser(line).whole(); }

std::string case_text_of(const ShapedValue& value, bool with_contents) {
  if (value.kind == ShapedValue::Kind::optional_none) return "none";
  if (value.kind == ShapedValue::Kind::unknown) return "unknown";
  if (value.kind == ShapedValue::Kind::sequence) {
    std::string s = "seq(";
    for (const auto& e : *value.elements) s += (s.size() > 4 ? "," : "") + case_text_of(e, with_contents);
    return s + ")";
  }
  std::string s = value.upper_bound ? "~" : "";
  for (const auto& [name, type] : types)
    if (type == value.dtype) s += name;
  s += "[";
  for (std::size_t i = 0; i < value.dims.size(); ++i) s += (i ? "," : "") + std::to_string(value.dims[i]);
  s += "]";
  if (with_contents && value.contents)
    s += is_float(value.dtype) ? listed(value.contents->reals) : listed(value.contents->integers);
  return s;
}

}  // namespace headroom::test
