// Formula: a backward formula of PyTorch's derivatives.yaml, or a helper function in the same language, as a compact
// tree. Names are resolved when it is parsed; how it is evaluated is in evaluate.h.
//
// The language is the part of C++ that derivatives.yaml uses: calls, methods, `->`, indexing, `{…}`, `?:`, the
// operators of numbers, and constructors of std::tuple, std::vector and std::optional. Helpers (helpers.txt) add
// statements.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::aten {

enum class Kind : std::uint8_t {
  undefined,  ///< Tensor(), std::nullopt, none
  integer,
  real,
  boolean,
  text,
  dtype,      ///< kBool, kLong: index = DType
  argument,   ///< of the operator; index = place in its schema
  result,     ///< of the operator; index = place among its returns
  gradient,   ///< grad, grads[i], grad_NAME; index counts differentiable outputs only
  gradients,  ///< grads, all of them
  needed,     ///< grad_input_mask: one bool a variable of the formula
  local,      ///< parameter or variable of a helper; index = its slot
  list,       ///< {a, b}: left to right
  tuple,      ///< std::make_tuple(a, b): right to left
  call,       ///< operands are the arguments; target says of what
  method,     ///< operand 0 is the object
  element,    ///< a[i], std::get<i>(a)
  negative,
  logical_not,
  multiply,
  divide,
  remainder,
  add,
  subtract,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  bitwise_and,
  logical_and,
  logical_or,
  choose,  ///< condition ? a : b
  // statements of helpers
  assign,          ///< index = slot; operand 0: the value
  assign_element,  ///< index = slot; operands: position, value
  evaluate,        ///< an expression for its effect
  give_back,       ///< return; operand 0: the value
  branch,          ///< if: operands: condition, block, [block]
  repeat,          ///< for: index = slot; operands: count or list, block
  block,
};

/// What a call or method goes to. The named ones are computed from sizes and numbers, without a call of the machine.
enum class Target : std::uint8_t {
  operators,  ///< an ATen operator: index = place of its base name in Formula::texts
  helper,     ///< a function of helpers.txt: index likewise
  // of a tensor
  defined,
  dim,
  size,
  sizes,
  strides,
  numel,
  scalar_type,
  storage_offset,
  is_complex,
  is_contiguous,
  is_tensor,
  requires_grad,
  memory_format,
  conj,
  adjoint,  ///< mT, mH
  itself,
  to_real,
  // of a number, a list or an optional
  value_or,
  is_number,
  equals,
  length,
  empty,
  back,
  push_back,
  square_root,
  logarithm,
  power,
  smaller,
  larger,
  infinite,
  wrapped,  ///< wrapped(dim, ndim): a negative dimension counts from the end
  // made of others
  filled,     ///< filled(n, x): a list of n times x
  undefined,  ///< undefined_list(n)
  reversed,
  negated,
  replaced,  ///< replaced(list, i, x)
  sizes_of_all,
  types_of_all,
  moved,  ///< move(x): a variable of a helper, which is empty afterwards
  wrap_opt_if,
  always_true,
  always_false,
};

using NodeId = std::uint32_t;

struct FormulaNode {
  Kind kind = Kind::undefined;
  Target target = Target::operators;
  std::uint16_t count = 0;  ///< operands
  std::uint32_t first = 0;  ///< place of the first in Formula::operands
  union {
    std::int64_t index = 0;  ///< also the value of an integer or boolean, and a text's place in Formula::texts
    double real;
  };
};

struct Formula {
  std::vector<FormulaNode> nodes;
  std::vector<NodeId> operands;
  std::vector<std::string_view> texts;  ///< string literals and names, inside the text that was parsed
  NodeId root = 0;

  const FormulaNode& operator[](NodeId id) const { return nodes[id]; }
  std::span<const NodeId> operands_of(const FormulaNode& node) const {
    return std::span(operands).subspan(node.first, node.count);
  }
};

/// A name that a formula may use, and what it stands for.
struct FormulaName {
  std::string_view name;
  Kind kind;
  std::int64_t index = 0;
};

/// Says whether a name is a function of helpers.txt.
class HelperNames {
 public:
  virtual ~HelperNames() = default;
  virtual bool has(std::string_view name) const = 0;
};

/// Parses an expression. `text` must outlive the formula. Throws Error with the place when it is none, uses a name
/// that is not known, or is nested deeper than 64.
Formula parse_formula(std::string_view text, std::span<const FormulaName> names, const HelperNames& helpers);

/// A function of helpers.txt: `name(parameter, parameter = default) { statements }`, one statement a line, a line going
/// on while a bracket is open. Statements: `x = …`, `x[i] = …`, `return …`, `if … { … } else { … }`, `for i in … { … }`
/// (0 … n-1 of an integer, or the elements of a list), and an expression alone. The first assignment declares; what a
/// block declares dies at its end.
struct Helper {
  std::string_view name;
  std::uint16_t parameters = 0;  ///< slots 0 … parameters-1
  std::uint16_t required = 0;    ///< parameters without default
  std::uint16_t slots = 0;
  std::vector<NodeId> defaults;  ///< of parameters required … parameters-1
  Formula body;                  ///< root: the block
};

/// Parses the function at the front of `text`; `text` is cut behind its closing brace.
Helper parse_helper(std::string_view& text, const HelperNames& helpers);

/// The expression again, fully bracketed: for tests and for people.
std::string text_of(const Formula& formula);

}  // namespace headroom::aten
