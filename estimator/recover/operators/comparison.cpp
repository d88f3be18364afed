// Comparisons, logic, Where.
#include <array>

#include "estimator/recover/casts.h"
#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

bool is_number(const Arg& a) { return !std::holds_alternative<SlotId>(a); }

/// `op` with its operands; a number on the left turns the comparison round.
void compare(Recovery& r, ValueId left, ValueId right, std::string op, std::string turned) {
  Arg a = r.operand(left), b = r.operand(right);
  if (is_number(a) && !is_number(b)) {
    std::swap(a, b);
    std::swap(op, turned);
  }
  if (is_number(a)) a = r.tensor(left);
  r.emit("aten::" + op + (is_number(b) ? ".Scalar" : ".Tensor"), {a, b});
}

void equal(Recovery& r) { compare(r, r.in(0), r.in(1), "eq", "eq"); }
void less(Recovery& r) { compare(r, r.in(0), r.in(1), "lt", "gt"); }
void less_or_equal(Recovery& r) { compare(r, r.in(0), r.in(1), "le", "ge"); }
void greater(Recovery& r) { compare(r, r.in(0), r.in(1), "gt", "lt"); }
void greater_or_equal(Recovery& r) { compare(r, r.in(0), r.in(1), "ge", "le"); }

void logical_not(Recovery& r) {
  const NodeIndex p = r.graph.producer(r.in(0));
  if (r.graph.is(p, "Equal") && r.graph.only_reader(r.in(0)) == r.node()) {
    compare(r, r.graph.input(p, 0), r.graph.input(p, 1), "ne", "ne");
  } else {
    r.emit("aten::bitwise_not", {r.tensor(0)});
  }
}

void logic(Recovery& r, std::string_view op) { r.emit(op, {r.tensor(0), r.operand(1)}); }
void logical_and(Recovery& r) {
  // x & True: masks that start from torch.ones((), dtype=bool)
  logic(r, std::holds_alternative<SlotId>(r.operand(1)) ? "aten::bitwise_and.Tensor" : "aten::bitwise_and.Scalar");
}
void logical_or(Recovery& r) {
  logic(r, std::holds_alternative<SlotId>(r.operand(1)) ? "aten::bitwise_or.Tensor" : "aten::bitwise_or.Scalar");
}
void logical_xor(Recovery& r) {
  logic(r, std::holds_alternative<SlotId>(r.operand(1)) ? "aten::bitwise_xor.Tensor" : "aten::bitwise_xor.Scalar");
}

void where(Recovery& r) {
  const SlotId condition = r.tensor(0);
  Arg a = r.operand(1);
  const Arg b = r.operand(2);
  if (is_number(a) && is_number(b) && is_float(r.dtype(r.out()))) {
    // A mask made of numbers has the stream's dtype: torch.where(m, torch.tensor(0.0, dtype=…), min).
    a = r.call("aten::scalar_tensor", {a, stream_dtype_for(r, r.dtype(r.out()))},
               std::string(r.graph.name(r.out())) + ".value");
  }
  const std::string_view op = is_number(a) ? (is_number(b) ? "aten::where.Scalar" : "aten::where.ScalarSelf")
                                           : (is_number(b) ? "aten::where.ScalarOther" : "aten::where.self");
  r.emit(op, {condition, a, b});
}

void is_nan(Recovery& r) { r.emit("aten::isnan", {r.tensor(0)}); }
void is_inf(Recovery& r) { r.emit("aten::isinf", {r.tensor(0)}); }

constexpr std::array list{
    OperatorHandler{"Equal", equal},
    OperatorHandler{"Less", less},
    OperatorHandler{"LessOrEqual", less_or_equal},
    OperatorHandler{"Greater", greater},
    OperatorHandler{"GreaterOrEqual", greater_or_equal},
    OperatorHandler{"Not", logical_not},
    OperatorHandler{"And", logical_and},
    OperatorHandler{"Or", logical_or},
    OperatorHandler{"Xor", logical_xor},
    OperatorHandler{"Where", where},
    OperatorHandler{"IsNaN", is_nan},
    OperatorHandler{"IsInf", is_inf},
};

}  // namespace

OperatorFamily comparison_operators() { return list; }

}  // namespace headroom::recovery
