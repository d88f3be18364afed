#include "estimator/shadow/tables/formula.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numbers>
#include <utility>

#include "estimator/base/dtype.h"
#include "estimator/base/error.h"

namespace headroom::aten {
namespace {

constexpr int deepest = 64;

struct Known {
  std::string_view name;
  Target target;
};

/// Free functions that are no ATen operators.
constexpr std::array<Known, 23> known_functions{{
    {"GradMode::is_enabled", Target::always_false},
    {"TensorGeometry", Target::itself},
    {"Scalar", Target::itself},
    {"to_args_sizes", Target::sizes_of_all},
    {"to_args_scalartypes", Target::types_of_all},
    {"wrap_opt_if", Target::wrap_opt_if},
    {"move", Target::moved},
    {"reverse_list", Target::reversed},
    {"negated", Target::negated},
    {"replaced", Target::replaced},
    {"filled", Target::filled},
    {"undefined_list", Target::undefined},
    {"wrapped", Target::wrapped},
    {"is_tensor", Target::is_tensor},
    {"is_number", Target::is_number},
    {"is_infinite", Target::infinite},
    {"is_complex", Target::is_complex},
    {"smaller", Target::smaller},
    {"larger", Target::larger},
    {"sqrt", Target::square_root},
    {"log", Target::logarithm},
    {"pow", Target::power},
    {"length", Target::length},
}};

/// Methods that need no ATen operator.
constexpr std::array<Known, 41> known_methods{{
    {"defined", Target::defined},
    {"has_value", Target::defined},
    {"value", Target::itself},
    {"value_or", Target::value_or},
    {"vec", Target::itself},
    {"guard_int", Target::itself},
    {"dim", Target::dim},
    {"size", Target::size},
    {"sym_size", Target::size},
    {"sizes", Target::sizes},
    {"sym_sizes", Target::sizes},
    {"strides", Target::strides},
    {"sym_strides", Target::strides},
    {"numel", Target::numel},
    {"sym_numel", Target::numel},
    {"storage_offset", Target::storage_offset},
    {"sym_storage_offset", Target::storage_offset},
    {"scalar_type", Target::scalar_type},
    {"dtype", Target::scalar_type},
    {"options", Target::scalar_type},
    {"device", Target::itself},
    {"is_complex", Target::is_complex},
    {"isComplex", Target::is_complex},
    {"is_cuda", Target::always_true},
    {"is_cpu", Target::always_false},
    {"is_xpu", Target::always_false},
    {"is_contiguous", Target::is_contiguous},
    {"requires_grad", Target::requires_grad},
    {"suggest_memory_format", Target::memory_format},
    {"conj", Target::conj},
    {"resolve_conj", Target::itself},
    {"mT", Target::adjoint},
    {"mH", Target::adjoint},
    {"toDouble", Target::to_real},
    {"toFloat", Target::to_real},
    {"toComplexDouble", Target::to_real},
    {"equal", Target::equals},
    {"empty", Target::empty},
    {"back", Target::back},
    {"push_back", Target::push_back},
    {"layout", Target::always_false},
}};

template <std::size_t N>
const Known* lookup(const std::array<Known, N>& table, std::string_view name) {
  const auto at = std::find_if(table.begin(), table.end(), [&](const Known& k) { return k.name == name; });
  return at == table.end() ? nullptr : &*at;
}

/// Names that stand for a value everywhere. Layouts are booleans: "is not strided".
struct Constant {
  std::string_view name;
  FormulaNode node;
};

FormulaNode literal(Kind kind, std::int64_t value = 0) {
  FormulaNode n;
  n.kind = kind;
  n.index = value;
  return n;
}

FormulaNode literal(double value) {
  FormulaNode n;
  n.kind = Kind::real;
  n.real = value;
  return n;
}

bool constant(std::string_view name, FormulaNode& out) {
  static const std::array<Constant, 18> constants{{
      {"true", literal(Kind::boolean, 1)},
      {"false", literal(Kind::boolean, 0)},
      {"none", literal(Kind::undefined)},
      {"nullopt", literal(Kind::undefined)},
      {"retain_variables", literal(Kind::boolean, 0)},
      {"kStrided", literal(Kind::boolean, 0)},
      {"kJagged", literal(Kind::boolean, 1)},
      {"kLong", literal(Kind::dtype, static_cast<std::int64_t>(DType::i64))},
      {"kBool", literal(Kind::dtype, static_cast<std::int64_t>(DType::b8))},
      {"kFloat", literal(Kind::dtype, static_cast<std::int64_t>(DType::f32))},
      {"kDouble", literal(Kind::dtype, static_cast<std::int64_t>(DType::f64))},
      {"Reduction::None", literal(Kind::integer, 0)},
      {"Reduction::Mean", literal(Kind::integer, 1)},
      {"Reduction::Sum", literal(Kind::integer, 2)},
      {"INT64_MAX", literal(Kind::integer, std::numeric_limits<std::int64_t>::max())},
      {"M_PI", literal(std::numbers::pi)},
      {"M_LN2", literal(std::numbers::ln2)},
      {"M_LN10", literal(std::numbers::ln10)},
  }};
  for (const Constant& c : constants) {
    if (c.name != name) continue;
    out = c.node;
    return true;
  }
  return false;
}

struct Operator {
  std::string_view text;
  int precedence;
  Kind kind;
};

/// Longer spellings first.
constexpr std::array<Operator, 14> binary_operators{{
    {"||", 1, Kind::logical_or},
    {"&&", 2, Kind::logical_and},
    {"==", 4, Kind::equal},
    {"!=", 4, Kind::not_equal},
    {"<=", 5, Kind::less_equal},
    {">=", 5, Kind::greater_equal},
    {"&", 3, Kind::bitwise_and},
    {"<", 5, Kind::less},
    {">", 5, Kind::greater},
    {"+", 6, Kind::add},
    {"-", 6, Kind::subtract},
    {"*", 7, Kind::multiply},
    {"/", 7, Kind::divide},
    {"%", 7, Kind::remainder},
}};

bool name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  Parser(std::string_view text, const HelperNames& helpers) : text_(text), helpers_(helpers) {}

  Formula expression(std::span<const FormulaName> names) {
    names_.assign(names.begin(), names.end());
    formula_.root = choice();
    blank();
    if (at_ != text_.size()) fail("unexpected text");
    return std::move(formula_);
  }

  Helper helper() {
    Helper h;
    lines();
    h.name = word();
    expect("(");
    ++open_;
    bool defaulted = false;
    while (!accept(")")) {
      if (h.parameters > 0) expect(",");
      declare(word());
      ++h.parameters;
      if (accept("=")) {
        h.defaults.push_back(choice());
        defaulted = true;
      } else if (defaulted) {
        fail("a parameter without default after one with");
      } else {
        ++h.required;
      }
    }
    --open_;
    formula_.root = block();
    h.slots = slots_;
    h.body = std::move(formula_);
    return h;
  }

  std::size_t position() const { return at_; }

 private:
  // ---- text --------------------------------------------------------------------------------------------------------

  [[noreturn]] void fail(std::string_view what) const {
    std::size_t from = text_.rfind('\n', at_ == 0 ? 0 : at_ - 1);
    from = from == std::string_view::npos ? 0 : from + 1;
    std::string_view line = text_.substr(from, text_.find('\n', from) - from).substr(0, 160);
    throw bad_input("formula: " + std::string(what), "'" + std::string(line) + "' at " + std::to_string(at_ - from));
  }

  /// Skips blanks; line ends only inside brackets, where a statement cannot end.
  void blank() {
    while (at_ < text_.size() && (text_[at_] == ' ' || (text_[at_] == '\n' && open_ > 0))) ++at_;
  }
  /// Skips empty lines and comments between statements.
  void lines() {
    while (at_ < text_.size()) {
      if (text_[at_] == ' ' || text_[at_] == '\n') {
        ++at_;
      } else if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        break;
      }
    }
  }
  bool looking_at(std::string_view token) {
    blank();
    return text_.substr(at_, token.size()) == token;
  }
  bool accept(std::string_view token) {
    if (!looking_at(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("'" + std::string(token) + "' expected");
  }
  std::string_view word() {
    blank();
    const std::size_t from = at_;
    if (at_ < text_.size() && name_start(text_[at_]))
      while (at_ < text_.size() && (name_start(text_[at_]) || digit(text_[at_]))) ++at_;
    if (at_ == from) fail("a name expected");
    return text_.substr(from, at_ - from);
  }
  bool accept_word(std::string_view token) {
    if (!looking_at(token)) return false;
    const std::size_t end = at_ + token.size();
    if (end < text_.size() && (name_start(text_[end]) || digit(text_[end]))) return false;
    at_ = end;
    return true;
  }

  // ---- nodes -------------------------------------------------------------------------------------------------------

  NodeId add(FormulaNode node, std::span<const NodeId> operands = {}) {
    if (operands.size() > std::numeric_limits<std::uint16_t>::max()) fail("too many operands");
    node.count = static_cast<std::uint16_t>(operands.size());
    node.first = static_cast<std::uint32_t>(formula_.operands.size());
    formula_.operands.insert(formula_.operands.end(), operands.begin(), operands.end());
    formula_.nodes.push_back(node);
    return static_cast<NodeId>(formula_.nodes.size() - 1);
  }
  NodeId add(Kind kind, std::initializer_list<NodeId> operands, std::int64_t index = 0) {
    return add(literal(kind, index), std::span(operands.begin(), operands.size()));
  }
  std::int64_t text(std::string_view t) {
    formula_.texts.push_back(t);
    return static_cast<std::int64_t>(formula_.texts.size() - 1);
  }

  // ---- expressions -------------------------------------------------------------------------------------------------

  class Deeper {
   public:
    explicit Deeper(Parser& p) : p_(p) {
      if (++p_.depth_ > deepest) p_.fail("nested too deeply");
    }
    ~Deeper() { --p_.depth_; }

   private:
    Parser& p_;
  };

  NodeId choice() {
    const Deeper deeper(*this);
    const NodeId condition = binary(1);
    if (!accept("?")) return condition;
    const NodeId yes = choice();
    expect(":");
    const NodeId no = choice();
    return add(Kind::choose, {condition, yes, no});
  }

  NodeId binary(int lowest) {
    NodeId left = unary();
    for (;;) {
      blank();
      const auto op = std::find_if(binary_operators.begin(), binary_operators.end(),
                                   [&](const Operator& o) { return looking_at(o.text); });
      if (op == binary_operators.end() || op->precedence < lowest) return left;
      at_ += op->text.size();
      const Deeper deeper(*this);
      const NodeId right = binary(op->precedence + 1);
      left = add(op->kind, {left, right});
    }
  }

  NodeId unary() {
    const Deeper deeper(*this);
    if (accept("-")) {
      const NodeId operand = unary();
      FormulaNode& n = formula_.nodes[operand];
      if (n.kind == Kind::integer) {
        n.index = -n.index;
        return operand;
      }
      if (n.kind == Kind::real) {
        n.real = -n.real;
        return operand;
      }
      return add(Kind::negative, {operand});
    }
    if (!looking_at("!=") && accept("!")) return add(Kind::logical_not, {unary()});
    if (accept("*")) return unary();  // a dereferenced optional is its value
    return postfix();
  }

  NodeId postfix() {
    NodeId object = primary();
    for (;;) {
      if (accept("[")) {
        ++open_;
        const NodeId position = choice();
        --open_;
        expect("]");
        const FormulaNode& place = formula_.nodes[position];
        if (formula_.nodes[object].kind == Kind::gradients && place.kind == Kind::integer)
          object = add(Kind::gradient, {}, place.index);
        else
          object = add(Kind::element, {object, position});
      } else if (looking_at("->") || looking_at(".")) {
        at_ += text_[at_] == '.' ? 1 : 2;
        object = method(object);
      } else {
        return object;
      }
    }
  }

  NodeId method(NodeId object) {
    const std::string_view name = without_suffix(word());
    std::vector<NodeId> operands{object};
    if (accept("(")) arguments(operands, ")");
    FormulaNode n = literal(Kind::method, text(name));
    if (const Known* k = lookup(known_methods, name)) {
      n.target = k->target;
      // options().dtype(x) is x; device(x) and layout(x) of options change nothing here.
      if (operands.size() == 2 && k->target == Target::scalar_type) return operands[1];
      if (operands.size() == 2 && name == "layout") return object;
    }
    return add(n, operands);
  }

  NodeId primary() {
    blank();
    if (at_ == text_.size()) fail("an expression expected");
    const char c = text_[at_];
    if (digit(c) || (c == '.' && at_ + 1 < text_.size() && digit(text_[at_ + 1]))) return number();
    if (c == '"' || c == '\'') return quoted(c);
    if (accept("(")) {
      ++open_;
      const NodeId inner = choice();
      --open_;
      expect(")");
      return inner;
    }
    if (accept("{")) {
      std::vector<NodeId> elements;
      arguments(elements, "}");
      // {{1, 1}}: the braces of a std::array around those of its elements.
      if (elements.size() == 1 && formula_.nodes[elements[0]].kind == Kind::list) return elements[0];
      return add(literal(Kind::list), elements);
    }
    return named();
  }

  void arguments(std::vector<NodeId>& into, std::string_view close) {
    ++open_;
    if (!accept(close)) {
      do {
        into.push_back(choice());
      } while (accept(","));
      --open_;
      expect(close);
      return;
    }
    --open_;
  }

  NodeId number() {
    const char* from = text_.data() + at_;
    const char* end = text_.data() + text_.size();
    const char* p = from;
    while (p < end && digit(*p)) ++p;
    const bool real = p < end && (*p == '.' || *p == 'e' || *p == 'E');
    FormulaNode n;
    std::from_chars_result r{};
    if (real) {
      double value = 0;
      r = std::from_chars(from, end, value);
      n = literal(value);
    } else {
      std::int64_t value = 0;
      r = std::from_chars(from, end, value);
      n = literal(Kind::integer, value);
    }
    if (r.ec != std::errc{}) fail("a number out of range");
    at_ += static_cast<std::size_t>(r.ptr - from);
    return add(n);
  }

  NodeId quoted(char quote) {
    const std::size_t close = text_.find(quote, at_ + 1);
    if (close == std::string_view::npos) fail("a string without end");
    const std::string_view content = text_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    return add(literal(Kind::text, text(content)));
  }

  static std::string_view without_suffix(std::string_view name) {
    constexpr std::string_view suffix = "_symint";
    return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
  }

  /// A possibly qualified name, without the namespaces that say nothing.
  std::string_view qualified() {
    std::string_view name = word();
    while (looking_at("::")) {
      const std::size_t from = static_cast<std::size_t>(name.data() - text_.data());
      at_ += 2;
      const std::string_view inner = word();
      const bool kept = name == "GradMode" || name == "Reduction" || name == "MemoryFormat";
      name = kept ? text_.substr(from, at_ - from) : inner;
    }
    return without_suffix(name);
  }

  /// `<…>` behind a type's name; its content.
  std::string_view template_arguments() {
    expect("<");
    const std::size_t from = at_;
    int depth = 1;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '<') ++depth;
      if (text_[at_] == '>' && --depth == 0) break;
    }
    if (at_ == text_.size()) fail("'<' without end");
    return text_.substr(from, at_++ - from);
  }

  NodeId named() {
    blank();
    if (text_.substr(at_, 2) == "::") at_ += 2;
    const std::string_view name = qualified();
    const bool type = name == "vector" || name == "tuple" || name == "optional" || name == "get";
    if (type && looking_at("<")) return constructed(name, template_arguments());
    if (name == "Tensor" || name == "make_tuple") return constructed(name, {});
    if (name.starts_with("MemoryFormat::"))
      return add(
          literal(Kind::text, text(name == "MemoryFormat::Contiguous" ? "contiguous_format" : "preserve_format")));

    if (looking_at("(")) {
      at_ += 1;
      std::vector<NodeId> operands;
      arguments(operands, ")");
      FormulaNode n = literal(Kind::call, text(name));
      if (const Known* k = lookup(known_functions, name))
        n.target = k->target;
      else if (helpers_.has(name))
        n.target = Target::helper;
      return add(n, operands);
    }
    if (const FormulaName* known = find(name)) return add(literal(known->kind, known->index));
    FormulaNode value;
    if (constant(name, value)) return add(value);
    if (name.starts_with("kCudnn")) return add(literal(Kind::text, text(name)));
    at_ -= name.size();
    fail("unknown name");
  }

  NodeId constructed(std::string_view name, std::string_view inside) {
    std::vector<NodeId> operands;
    const bool braces = looking_at("{");
    if (braces)
      at_ += 1;
    else
      expect("(");
    arguments(operands, braces ? "}" : ")");
    if (operands.empty()) return add(literal(Kind::undefined));
    if (name == "tuple" || name == "make_tuple") return add(literal(braces ? Kind::list : Kind::tuple), operands);
    if (name == "optional" && operands.size() == 1) return operands[0];
    if (name == "vector" && operands.size() == 2) {
      FormulaNode n = literal(Kind::call, text("filled"));
      n.target = Target::filled;
      return add(n, operands);
    }
    std::int64_t place = 0;
    if (name == "get" && operands.size() == 1 &&
        std::from_chars(inside.data(), inside.data() + inside.size(), place).ec == std::errc{})
      return add(Kind::element, {operands[0], add(literal(Kind::integer, place))});
    fail("this constructor is not in the language");
  }

  // ---- statements --------------------------------------------------------------------------------------------------

  const FormulaName* find(std::string_view name) const {
    const auto at = std::find_if(names_.rbegin(), names_.rend(), [&](const FormulaName& n) { return n.name == name; });
    return at == names_.rend() ? nullptr : &*at;
  }
  std::int64_t declare(std::string_view name) {
    if (slots_ == std::numeric_limits<std::uint16_t>::max()) fail("too many variables");
    names_.push_back({name, Kind::local, slots_});
    return slots_++;
  }

  /// The name in front of "=" where a statement begins with one; empty otherwise, with nothing read.
  std::string_view assigned_name() {
    blank();
    const std::size_t from = at_;
    if (at_ < text_.size() && name_start(text_[at_])) {
      const std::string_view name = word();
      if (!looking_at("==") && accept("=")) return name;
    }
    at_ = from;
    return {};
  }

  NodeId block() {
    const Deeper deeper(*this);
    expect("{");
    const std::size_t scope = names_.size();
    const std::int64_t first = slots_;
    std::vector<NodeId> statements;
    for (lines(); !accept("}"); lines()) {
      statements.push_back(statement());
      if (!looking_at("\n") && !looking_at("}") && !looking_at("#")) fail("the end of the line expected");
    }
    names_.resize(scope);
    return add(literal(Kind::block, first << 16 | slots_), statements);
  }

  NodeId statement() {
    if (accept_word("return")) return add(Kind::give_back, {choice()});
    if (accept_word("if")) {
      const NodeId condition = choice();
      const NodeId yes = block();
      if (!accept_word("else")) return add(Kind::branch, {condition, yes});
      if (looking_at("if")) return add(Kind::branch, {condition, yes, statement()});
      return add(Kind::branch, {condition, yes, block()});
    }
    if (accept_word("for")) {
      const std::string_view name = word();
      if (!accept_word("in")) fail("'in' expected");
      const NodeId over = choice();
      const std::size_t scope = names_.size();
      const std::int64_t slot = declare(name);
      const NodeId body = block();
      names_.resize(scope);
      return add(Kind::repeat, {over, body}, slot);
    }
    if (const std::string_view name = assigned_name(); !name.empty()) {
      const NodeId value = choice();
      const FormulaName* known = find(name);
      return add(Kind::assign, {value}, known ? known->index : declare(name));
    }
    const NodeId left = choice();
    if (looking_at("==") || !accept("=")) return add(Kind::evaluate, {left});
    const FormulaNode target = formula_.nodes[left];
    const NodeId value = choice();
    if (target.kind == Kind::element) {
      const auto operands = formula_.operands_of(target);
      const NodeId position = operands[1];
      const FormulaNode& list = formula_.nodes[operands[0]];
      if (list.kind == Kind::local) return add(Kind::assign_element, {position, value}, list.index);
    }
    fail("only variables and their elements can be assigned");
  }

  std::string_view text_;
  const HelperNames& helpers_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int open_ = 0;  ///< brackets
  std::uint16_t slots_ = 0;
  std::vector<FormulaName> names_;
  Formula formula_;
};

/// Writes a tree as text.
class Writer {
 public:
  explicit Writer(const Formula& f) : f_(f) {}

  std::string expression(NodeId id) const {
    const FormulaNode& n = f_[id];
    const auto operands = f_.operands_of(n);
    switch (n.kind) {
      case Kind::undefined:
        return "none";
      case Kind::integer:
        return std::to_string(n.index);
      case Kind::real:
        return std::to_string(n.real);
      case Kind::boolean:
        return n.index ? "true" : "false";
      case Kind::text:
        return "\"" + std::string(text(n)) + "\"";
      case Kind::dtype:
        return std::string(name_of(static_cast<DType>(n.index)));
      case Kind::argument:
        return "argument" + std::to_string(n.index);
      case Kind::result:
        return "result" + std::to_string(n.index);
      case Kind::gradient:
        return "grads[" + std::to_string(n.index) + "]";
      case Kind::gradients:
        return "grads";
      case Kind::needed:
        return "grad_input_mask";
      case Kind::local:
        return "local" + std::to_string(n.index);
      case Kind::list:
        return "{" + joined(operands) + "}";
      case Kind::tuple:
        return "make_tuple(" + joined(operands) + ")";
      case Kind::call:
        return std::string(text(n)) + "(" + joined(operands) + ")";
      case Kind::method:
        return expression(operands[0]) + "." + std::string(text(n)) + "(" + joined(operands.subspan(1)) + ")";
      case Kind::element:
        return expression(operands[0]) + "[" + expression(operands[1]) + "]";
      case Kind::negative:
        return "-" + expression(operands[0]);
      case Kind::logical_not:
        return "!" + expression(operands[0]);
      case Kind::choose:
        return "(" + expression(operands[0]) + " ? " + expression(operands[1]) + " : " + expression(operands[2]) + ")";
      default:
        break;
    }
    for (const Operator& o : binary_operators)
      if (o.kind == n.kind)
        return "(" + expression(operands[0]) + " " + std::string(o.text) + " " + expression(operands[1]) + ")";
    return {};
  }

 private:
  std::string_view text(const FormulaNode& n) const { return f_.texts[static_cast<std::size_t>(n.index)]; }
  std::string joined(std::span<const NodeId> ids) const {
    std::string s;
    for (std::size_t i = 0; i < ids.size(); ++i) s += (i ? ", " : "") + expression(ids[i]);
    return s;
  }

  const Formula& f_;
};

}  // namespace

Formula parse_formula(std::string_view text, std::span<const FormulaName> names, const HelperNames& helpers) {
  return Parser(text, helpers).expression(names);
}

Helper parse_helper(std::string_view& text, const HelperNames& helpers) {
  Parser parser(text, helpers);
  Helper helper = parser.helper();
  text.remove_prefix(parser.position());
  return helper;
}

std::string text_of(const Formula& formula) { return Writer(formula).expression(formula.root); }

}  // namespace headroom::aten
