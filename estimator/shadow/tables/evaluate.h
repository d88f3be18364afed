// Evaluation of backward formulas and helper functions, in the order in which the released wheels' C++ makes and frees
// tensors.
//
// GCC evaluates the right operand before the left and the last argument before the first; a method's object comes
// before its arguments; braces go left to right. Every temporary lives to the end of the full expression and dies in
// reverse order of construction; a function's result is moved out first; its locals die after its last statement's
// temporaries, in reverse order of declaration. Probe: 1,684 single-operator cases, forward and backward, event by
// event.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "estimator/shadow/tables/aten_table.h"
#include "estimator/shadow/tables/overloads.h"
#include "estimator/shadow/value.h"

namespace headroom::shadow {

/// What formulas run on.
class FormulaHost {
 public:
  virtual ~FormulaHost() = default;
  /// One operator call, as C++ code in PyTorch makes it. `args` are in the schema's order, defaults filled in.
  virtual Outputs call(const aten::OpSchema& op, std::span<const Value> args) = 0;
};

/// A formula or helper uses something that is not there: an operator, an overload, a helper without text. The caller
/// falls back on the generic gradient and says so.
struct NotModelled {
  std::string what;
};

/// What an autograd node has at hand. Tensors that it did not save need sizes, strides, dtype and offset only.
struct NodeValues {
  std::span<const Value> arguments;  ///< in the schema's order
  std::span<const Value> results;
  std::span<const Tensor> gradients;  ///< by differentiable output; undefined where nobody used the output
  std::uint32_t needed = ~0U;         ///< bit i: variable i of the formula needs a gradient
};

/// Runs formulas on a host. Holds the temporaries of the expressions that are being evaluated, so it is used by one
/// thread; a formula may run while another one is (a composite operator called in backward).
class Evaluator {
 public:
  Evaluator(const aten::Table& table, FormulaHost& host) : table_(table), host_(host) {}

  /// The value of a formula: a gradient, or a list of gradients (one a variable; an undefined value stands for a list
  /// of undefined ones). Its temporaries are gone when this returns. Throws NotModelled.
  Value evaluate(const aten::Formula& formula, const NodeValues& node);

  /// Calls a function of helpers.txt. Throws NotModelled.
  Value call_helper(std::string_view name, std::span<const Value> args);

 private:
  struct Frame;
  using Node = aten::FormulaNode;

  Value full_expression(const Frame& frame, aten::NodeId id);
  Value value(const Frame& frame, aten::NodeId id);
  Value temporary(Value v);
  BoundArguments arguments(const Frame& frame, const Node& node, std::size_t from);
  Value call(const Frame& frame, const Node& node);
  Value moved(const Frame& frame, const Node& node);
  Value method(const Frame& frame, const Node& node);
  Value helper(std::string_view name, std::span<const Value> args);
  Value operators(std::string_view base, std::span<const Value> args);
  Value builtin(std::string_view name, aten::Target target, std::span<const Value> args);
  Value binary(const Frame& frame, const Node& node);
  Value tensor_operator(aten::Kind kind, const Value& left, const Value& right);
  bool condition(const Frame& frame, aten::NodeId id);
  /// True when the statement returned.
  bool statement(Frame& frame, aten::NodeId id);
  bool block(Frame& frame, aten::NodeId id);

  const aten::Table& table_;
  FormulaHost& host_;
  std::vector<Value> temporaries_;
  int depth_ = 0;  ///< helpers inside helpers
};

}  // namespace headroom::shadow
