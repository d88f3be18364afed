#include "estimator/shadow/tables/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace headroom::shadow {
namespace {

using aten::Kind;
using aten::NodeId;
using aten::Target;

constexpr int deepest_call = 16;
constexpr std::int64_t longest_loop = 1 << 20;

[[noreturn]] void not_modelled(std::string_view what, std::string_view why) {
  throw NotModelled{std::string(what) + " " + std::string(why)};
}

/// Integers become an int[], anything else a list of values.
Value list_of(std::span<const Value> elements) {
  if (std::all_of(elements.begin(), elements.end(), [](const Value& v) { return v.is_integer(); })) {
    Dims dims;
    for (const Value& v : elements) dims.push_back(v.integer());
    return Value(dims);
  }
  return Value(ValueList(elements.begin(), elements.end()));
}

std::size_t length_of(const Value& v) {
  if (v.is_integers()) return v.integers().size();
  if (v.is_list()) return v.list().size();
  return 0;
}

/// Element `i` of a list; from the end when negative. Undefined for an undefined list (std::tuple<Tensor, …>()).
Value element_of(const Value& list, std::int64_t i) {
  if (list.none()) return {};
  const auto n = static_cast<std::int64_t>(length_of(list));
  if (i < 0) i += n;
  if (i < 0 || i >= n) not_modelled("an element", "outside its list");
  return list.is_integers() ? Value(list.integers()[static_cast<std::size_t>(i)])
                            : list.list()[static_cast<std::size_t>(i)];
}

/// The value as a number; helpers are data, so what is none must not end the program.
const Value& number_in(const Value& v) {
  if (!v.is_number()) not_modelled("a value", "that is no number");
  return v;
}

DType dtype_of(const Value& v) {
  if (v.is_tensor()) return v.tensor()->dtype;
  if (v.is_dtype()) return v.dtype();
  if (v.is_bool()) return DType::b8;
  return v.is_integer() ? DType::i64 : DType::f32;
}

std::int64_t wrapped(std::int64_t dim, std::int64_t rank) {
  return dim < 0 ? dim + std::max<std::int64_t>(rank, 1) : dim;
}

/// Arithmetic of numbers, as in C++: integers stay integers.
Value number_operator(Kind kind, const Value& a, const Value& b) {
  const bool whole = !a.is_real() && !b.is_real();
  const std::int64_t i = whole ? a.integer() : 0, j = whole ? b.integer() : 0;
  const double x = a.real(), y = b.real();
  if (whole && j == 0 && (kind == Kind::divide || kind == Kind::remainder)) not_modelled("a division", "by zero");
  switch (kind) {
    case Kind::multiply:
      return whole ? Value(checked_mul(i, j)) : Value(x * y);
    case Kind::divide:
      return whole ? Value(i / j) : Value(x / y);
    case Kind::remainder:
      return whole ? Value(i % j) : Value(std::fmod(x, y));
    case Kind::add:
      return whole ? Value(checked_add(i, j)) : Value(x + y);
    case Kind::subtract:
      return whole ? Value(checked_add(i, -j)) : Value(x - y);
    case Kind::less:
      return Value(x < y);
    case Kind::less_equal:
      return Value(x <= y);
    case Kind::greater:
      return Value(x > y);
    case Kind::greater_equal:
      return Value(x >= y);
    case Kind::equal:
      return Value(x == y);
    case Kind::not_equal:
      return Value(x != y);
    default:
      not_modelled("an operator", "of numbers");
  }
}

std::string_view operator_name(Kind kind) {
  switch (kind) {
    case Kind::multiply:
      return "mul";
    case Kind::divide:
      return "div";
    case Kind::remainder:
      return "remainder";
    case Kind::add:
      return "add";
    case Kind::subtract:
      return "sub";
    case Kind::less:
      return "lt";
    case Kind::less_equal:
      return "le";
    case Kind::greater:
      return "gt";
    case Kind::greater_equal:
      return "ge";
    case Kind::equal:
      return "eq";
    case Kind::not_equal:
      return "ne";
    case Kind::bitwise_and:
      return "bitwise_and";
    default:
      return {};
  }
}

/// The operator with its sides exchanged: 2 < t is t > 2.
Kind mirrored(Kind kind) {
  switch (kind) {
    case Kind::less:
      return Kind::greater;
    case Kind::less_equal:
      return Kind::greater_equal;
    case Kind::greater:
      return Kind::less;
    case Kind::greater_equal:
      return Kind::less_equal;
    default:
      return kind;
  }
}

/// A full expression: what it made goes at its end, in reverse order, also when something is not modelled.
class Temporaries {
 public:
  explicit Temporaries(std::vector<Value>& all) : all_(all), mark_(all.size()) {}
  ~Temporaries() {
    while (all_.size() > mark_) all_.pop_back();
  }
  Temporaries(const Temporaries&) = delete;
  Temporaries& operator=(const Temporaries&) = delete;

 private:
  std::vector<Value>& all_;
  std::size_t mark_;
};

}  // namespace

/// A formula, or a call of a helper, while it is being evaluated.
struct Evaluator::Frame {
  const aten::Formula& formula;
  const NodeValues* node = nullptr;        ///< of a formula
  mutable std::vector<Value> locals = {};  ///< of a helper
  Value result = {};
};

// ---- expressions
// -----------------------------------------------------------------------------------------------------

Value Evaluator::evaluate(const aten::Formula& formula, const NodeValues& node) {
  return full_expression(Frame{formula, &node}, formula.root);
}

Value Evaluator::call_helper(std::string_view name, std::span<const Value> args) { return helper(name, args); }

Value Evaluator::full_expression(const Frame& frame, NodeId id) {
  const Temporaries scope(temporaries_);
  return value(frame, id);
}

Value Evaluator::temporary(Value v) {
  if (v.is_tensor() || v.is_list()) temporaries_.push_back(v);
  return v;
}

Value Evaluator::value(const Frame& frame, NodeId id) {
  const aten::Formula& f = frame.formula;
  const Node& n = f[id];
  const auto operands = f.operands_of(n);
  const auto place = static_cast<std::size_t>(n.index);
  switch (n.kind) {
    case Kind::undefined:
      return {};
    case Kind::integer:
      return Value(n.index);
    case Kind::real:
      return Value(n.real);
    case Kind::boolean:
      return Value(n.index != 0);
    case Kind::text:
      return Value(f.texts[place]);
    case Kind::dtype:
      return Value(static_cast<DType>(n.index));
    case Kind::argument:
      return frame.node->arguments[place];
    case Kind::result:
      return place < frame.node->results.size() ? frame.node->results[place] : Value();
    case Kind::gradient:
      return place < frame.node->gradients.size() ? Value(frame.node->gradients[place]) : Value();
    case Kind::gradients: {
      ValueList all(frame.node->gradients.begin(), frame.node->gradients.end());
      return Value(std::move(all));
    }
    case Kind::needed: {
      ValueList bits;
      for (std::uint32_t i = 0; i < 8; ++i) bits.emplace_back((frame.node->needed >> i & 1U) != 0);
      return Value(std::move(bits));
    }
    case Kind::local:
      return frame.locals[place];
    case Kind::list: {
      BoundArguments elements;
      for (const NodeId one : operands) elements.push_back(value(frame, one));
      return temporary(list_of(span_of(elements)));
    }
    case Kind::tuple:
      return list_of(span_of(arguments(frame, n, 0)));
    case Kind::call:
      return call(frame, n);
    case Kind::method:
      return method(frame, n);
    case Kind::element: {
      const Value list = value(frame, operands[0]);
      return element_of(list, number_in(value(frame, operands[1])).integer());
    }
    case Kind::negative: {
      const Value v = value(frame, operands[0]);
      if (v.is_tensor()) return operators("neg", {&v, 1});
      return number_in(v).is_real() ? Value(-v.real()) : Value(-v.integer());
    }
    case Kind::logical_not:
      return Value(!condition(frame, operands[0]));
    case Kind::logical_and:
      return Value(condition(frame, operands[0]) && condition(frame, operands[1]));
    case Kind::logical_or:
      return Value(condition(frame, operands[0]) || condition(frame, operands[1]));
    case Kind::choose:
      return value(frame, condition(frame, operands[0]) ? operands[1] : operands[2]);
    default:
      return binary(frame, n);
  }
}

bool Evaluator::condition(const Frame& frame, NodeId id) { return number_in(value(frame, id)).boolean(); }

/// Operands from `from` on, evaluated last to first.
BoundArguments Evaluator::arguments(const Frame& frame, const Node& node, std::size_t from) {
  const auto operands = frame.formula.operands_of(node);
  BoundArguments args(operands.size());
  for (std::size_t i = operands.size(); i > from; --i) args[i - 1] = value(frame, operands[i - 1]);
  return args;
}

Value Evaluator::call(const Frame& frame, const Node& node) {
  const std::string_view name = frame.formula.texts[static_cast<std::size_t>(node.index)];
  if (node.target == Target::moved) return moved(frame, node);
  const BoundArguments evaluated = arguments(frame, node, 0);
  const std::span<const Value> args = span_of(evaluated);
  switch (node.target) {
    case Target::operators:
      return operators(name, args);
    case Target::helper:
      return temporary(helper(name, args));
    default:
      return builtin(name, node.target, args);
  }
}

/// std::move into a parameter by value: the object lives on as a temporary of the caller's expression.
Value Evaluator::moved(const Frame& frame, const Node& node) {
  const auto operands = frame.formula.operands_of(node);
  if (operands.size() != 1 || frame.formula[operands[0]].kind != Kind::local)
    not_modelled("move", "of something that is no variable");
  return temporary(std::exchange(frame.locals[static_cast<std::size_t>(frame.formula[operands[0]].index)], Value()));
}

Value Evaluator::method(const Frame& frame, const Node& node) {
  const std::string_view name = frame.formula.texts[static_cast<std::size_t>(node.index)];
  Value object = value(frame, frame.formula.operands_of(node)[0]);
  BoundArguments evaluated = arguments(frame, node, 1);
  evaluated[0] = std::move(object);
  const std::span<const Value> args = span_of(evaluated);
  return node.target == Target::operators ? operators(name, args) : builtin(name, node.target, args);
}

Value Evaluator::operators(std::string_view base, std::span<const Value> args) {
  const aten::OpSchema* schema = choose_overload(table_, base, args);
  BoundArguments bound;
  if (!schema || !bind_arguments(*schema, args, bound)) not_modelled(base, "has no overload for these arguments");
  Outputs outputs = host_.call(*schema, span_of(bound));
  if (schema->in_place && !outputs.empty()) return bound[0];
  if (outputs.size() == 1) return temporary(std::move(outputs[0]));
  return temporary(Value(ValueList(std::make_move_iterator(outputs.begin()), std::make_move_iterator(outputs.end()))));
}

Value Evaluator::binary(const Frame& frame, const Node& node) {
  const auto operands = frame.formula.operands_of(node);
  const Value right = value(frame, operands[1]);
  const Value left = value(frame, operands[0]);
  if (left.is_tensor() || right.is_tensor()) return tensor_operator(node.kind, left, right);
  if (left.is_number() && right.is_number()) return number_operator(node.kind, left, right);
  const bool same = left.is_text() && right.is_text()     ? left.text() == right.text()
                    : left.is_dtype() && right.is_dtype() ? left.dtype() == right.dtype()
                                                          : left.none() && right.none();
  if (node.kind == Kind::equal) return Value(same);
  if (node.kind == Kind::not_equal) return Value(!same);
  not_modelled("an operator", "of these values");
}

/// ATen/TensorOperators.h. A number in front of - and / becomes a tensor of the other side's shape.
Value Evaluator::tensor_operator(Kind kind, const Value& left, const Value& right) {
  if (left.is_tensor()) {
    const std::array<Value, 2> args{left, right};
    return operators(operator_name(kind), args);
  }
  if (kind == Kind::subtract || kind == Kind::divide) {
    const Value made = operators("empty_like", {&right, 1});
    const std::array<Value, 2> fill{made, left};
    operators("fill_", fill);
    const std::array<Value, 2> args{made, right};
    return operators(kind == Kind::subtract ? "sub_" : "div_", args);
  }
  const std::array<Value, 2> args{right, left};
  return operators(operator_name(mirrored(kind)), args);
}

Value Evaluator::builtin(std::string_view name, Target target, std::span<const Value> args) {
  const auto number = [&](std::size_t i) {
    if (i >= args.size() || !args[i].is_number()) not_modelled(name, "of something that is no number");
    return args[i];
  };
  if (args.empty() && target != Target::always_false && target != Target::always_true)
    not_modelled(name, "without arguments");
  const Value none;
  const Value& v = args.empty() ? none : args[0];
  const TensorImpl* t = v.is_tensor() ? v.tensor().get() : nullptr;
  switch (target) {
    case Target::operators:
    case Target::helper:
      break;
    case Target::always_true:
      return Value(true);
    case Target::always_false:
      return Value(false);
    case Target::itself:
      return v;
    case Target::defined:
      return Value(!v.none());
    case Target::is_tensor:
      return Value(t != nullptr);
    case Target::is_number:
      return Value(v.is_number());
    case Target::dim:
      return Value(t ? static_cast<std::int64_t>(t->dim()) : std::int64_t{0});
    case Target::length:
      return Value(static_cast<std::int64_t>(length_of(v)));
    case Target::empty:
      return Value(length_of(v) == 0);
    case Target::back:
      return element_of(v, -1);
    case Target::size:
      if (args.size() == 2) return element_of(Value(t ? t->sizes : Dims{}), number(1).integer());
      if (!t) return Value(static_cast<std::int64_t>(length_of(v)));
      return Value(t->sizes);
    case Target::sizes:
      return v.none() ? Value() : Value(t ? t->sizes : Dims{});
    case Target::strides:
      return v.none() ? Value() : Value(t ? t->strides : Dims{});
    case Target::numel:
      return Value(t ? t->count() : std::int64_t{1});
    case Target::storage_offset:
      return Value(t ? t->offset : std::int64_t{0});
    case Target::scalar_type:
      return v.none() ? Value() : Value(dtype_of(v));
    case Target::is_complex:
      return Value(is_complex(dtype_of(v)));
    case Target::is_contiguous:
      return Value(!t || is_contiguous(*t));
    case Target::requires_grad:
      return Value(t && t->needs_grad());
    case Target::memory_format:
      return Value(t && suggests_channels_last(*t) ? t->dim() == 5 ? "channels_last_3d" : "channels_last"
                                                   : "contiguous_format");
    case Target::conj:
      return t && is_complex(t->dtype) ? operators("_conj", args.first(1)) : v;
    case Target::adjoint: {
      const std::array<Value, 3> swap{v, Value(-2), Value(-1)};
      return operators("transpose", swap);
    }
    case Target::to_real:
      return Value(number(0).real());
    case Target::value_or:
      return v.none() && args.size() == 2 ? args[1] : v;
    case Target::equals:
      return number_operator(Kind::equal, number(0), number(1));
    case Target::infinite:
      return Value(std::isinf(number(0).real()));
    case Target::smaller:
      return number(0).real() < number(1).real() ? args[0] : args[1];
    case Target::larger:
      return number(0).real() < number(1).real() ? args[1] : args[0];
    case Target::wrapped:
      return Value(wrapped(number(0).integer(), number(1).integer()));
    case Target::square_root:
      return v.is_number() ? Value(std::sqrt(v.real())) : operators("sqrt", args);
    case Target::logarithm:
      return v.is_number() ? Value(std::log(v.real())) : operators("log", args);
    case Target::power:
      if (v.is_number() && args.size() == 2 && args[1].is_number()) return Value(std::pow(v.real(), args[1].real()));
      return operators("pow", args);
    case Target::wrap_opt_if:
      return number(1).boolean() ? v : Value();
    case Target::filled:
    case Target::undefined: {
      const std::int64_t n = number(0).integer();
      if (n < 0 || n > longest_loop) not_modelled(name, "of this length");
      const std::vector<Value> elements(static_cast<std::size_t>(n), target == Target::filled ? number(1) : Value());
      return target == Target::filled ? list_of(elements) : Value(elements);
    }
    case Target::reversed: {
      Dims dims(v.integers().rbegin(), v.integers().rend());
      return Value(dims);
    }
    case Target::negated: {
      Dims dims = v.integers();
      for (std::int64_t& d : dims) d = -d;
      return Value(dims);
    }
    case Target::replaced: {
      Dims dims = v.integers();
      const std::int64_t i = wrapped(number(1).integer(), static_cast<std::int64_t>(dims.size()));
      if (i < 0 || i >= static_cast<std::int64_t>(dims.size())) not_modelled(name, "outside its list");
      dims[static_cast<std::size_t>(i)] = number(2).integer();
      return Value(dims);
    }
    case Target::sizes_of_all:
    case Target::types_of_all: {
      ValueList all;
      if (v.is_list())
        for (const Value& one : v.list())
          all.push_back(builtin(name, target == Target::sizes_of_all ? Target::sizes : Target::scalar_type, {&one, 1}));
      return Value(std::move(all));
    }
    case Target::moved:
    case Target::push_back:
      break;  // of variables, not of values
  }
  not_modelled(name, "is no function here");
}

// ---- helpers
// ---------------------------------------------------------------------------------------------------------

Value Evaluator::helper(std::string_view name, std::span<const Value> args) {
  const aten::Helper* h = table_.helpers().find(name, args.size());
  if (!h) not_modelled(name, "takes another number of arguments");
  if (depth_ >= deepest_call) not_modelled(name, "calls itself too often");
  Frame frame{h->body};
  frame.locals.resize(h->slots);
  std::copy(args.begin(), args.end(), frame.locals.begin());
  for (std::size_t i = args.size(); i < h->parameters; ++i)
    frame.locals[i] = value(frame, h->defaults[i - h->required]);

  struct Scope {
    int& depth;
    Frame& frame;
    ~Scope() {
      --depth;
      while (!frame.locals.empty()) frame.locals.pop_back();
    }
  };
  ++depth_;
  const Scope scope{depth_, frame};
  block(frame, h->body.root);
  return std::move(frame.result);
}

bool Evaluator::block(Frame& frame, NodeId id) {
  const Node& n = frame.formula[id];
  for (const NodeId one : frame.formula.operands_of(n))
    if (statement(frame, one)) return true;
  const auto first = static_cast<std::size_t>(n.index >> 16), end = static_cast<std::size_t>(n.index & 0xFFFF);
  for (std::size_t slot = end; slot > first; --slot) frame.locals[slot - 1] = Value();
  return false;
}

bool Evaluator::statement(Frame& frame, NodeId id) {
  const Node& n = frame.formula[id];
  const auto operands = frame.formula.operands_of(n);
  const auto slot = static_cast<std::size_t>(n.index);
  switch (n.kind) {
    case Kind::block:
      return block(frame, id);
    case Kind::give_back:
      frame.result = full_expression(frame, operands[0]);
      return true;
    case Kind::assign: {
      const Temporaries scope(temporaries_);
      frame.locals[slot] = value(frame, operands[0]);  // what it held goes first, then the temporaries
      return false;
    }
    case Kind::assign_element: {
      Value element = full_expression(frame, operands[1]);
      const std::int64_t i = number_in(full_expression(frame, operands[0])).integer();
      Value& list = frame.locals[slot];
      if (list.is_integers()) {
        number_in(element);
        list = builtin("an element", Target::replaced, std::array<Value, 3>{list, Value(i), element});
      } else {
        element_of(list, i);
        list.list()[static_cast<std::size_t>(wrapped(i, static_cast<std::int64_t>(length_of(list))))] =
            std::move(element);
      }
      return false;
    }
    case Kind::evaluate: {
      const Node& e = frame.formula[operands[0]];
      if (e.kind == Kind::method && e.target == Target::push_back && e.count == 2) {
        const auto parts = frame.formula.operands_of(e);
        const Node& list = frame.formula[parts[0]];
        if (list.kind != Kind::local) not_modelled("push_back", "on something that is no variable");
        Value& held = frame.locals[static_cast<std::size_t>(list.index)];
        Value element = full_expression(frame, parts[1]);
        if (held.is_list()) {
          held.list().push_back(std::move(element));
        } else {
          BoundArguments elements;
          for (const std::int64_t d : held.integers()) elements.push_back(Value(d));
          elements.push_back(std::move(element));
          held = list_of(span_of(elements));
        }
        return false;
      }
      full_expression(frame, operands[0]);
      return false;
    }
    case Kind::branch: {
      const bool yes = number_in(full_expression(frame, operands[0])).boolean();
      if (!yes && operands.size() < 3) return false;
      return statement(frame, operands[yes ? 1 : 2]);
    }
    case Kind::repeat: {
      const Value over = full_expression(frame, operands[0]);
      const std::int64_t n_times = over.is_number() ? over.integer() : static_cast<std::int64_t>(length_of(over));
      if (n_times > longest_loop) not_modelled("a loop", "of this length");
      for (std::int64_t i = 0; i < n_times; ++i) {
        frame.locals[slot] = over.is_number() ? Value(i) : element_of(over, i);
        if (block(frame, operands[1])) return true;
      }
      frame.locals[slot] = Value();
      return false;
    }
    default:
      not_modelled("a statement", "of this kind");
  }
}

}  // namespace headroom::shadow
