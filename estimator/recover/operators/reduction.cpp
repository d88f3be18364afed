// Reductions over axes.
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

struct Axes {
  Dims axes;  ///< all of them when the node names none
  bool keep = true;
  bool all = false;
};

Axes axes_of(Recovery& r) {
  Axes a;
  a.keep = r.onnx().integer("keepdims", 1) != 0;
  const auto given = r.graph.attribute_or_input(r.node(), "axes", 1);
  if (given && !given->empty()) {
    a.axes = *given;
  } else {
    a.all = true;
    for (std::size_t d = 0; d < r.dims(r.in(0)).size(); ++d) a.axes.push_back(static_cast<std::int64_t>(d));
  }
  return a;
}

/// `over_axes` takes (x, axes, keepdim), `over_all` x alone.
void reduce(Recovery& r, std::string_view over_axes, std::string_view over_all) {
  if (r.onnx().integer("noop_with_empty_axes", 0) && !r.has(1)) return r.alias(r.out(), r.in(0));
  const Axes a = axes_of(r);
  if (a.all && !a.keep && !over_all.empty()) {
    r.emit(over_all, {r.tensor(0)});
  } else {
    r.emit(over_axes, {r.tensor(0), a.axes, a.keep});
  }
}

void mean(Recovery& r) { reduce(r, "aten::mean.dim", "aten::mean"); }
void sum(Recovery& r) { reduce(r, "aten::sum.dim_IntList", "aten::sum"); }
/// Of x.max(dim) whose indices nobody reads the file holds the values alone, as of x.amax(dim): over one axis the first
/// is usual. The second keeps x.
void extreme(Recovery& r, const std::string& name) {
  const Axes a = axes_of(r);
  if (a.axes.size() != 1 || (a.all && !a.keep)) return reduce(r, "aten::a" + name, "aten::" + name);
  if (r.options.training && is_float(r.dtype(r.in(0))))
    r.diagnose("max-or-amax", Severity::info, "a maximum over one axis is taken to be x." + name + "(dim)",
               bytes_of(r.dtype(r.in(0)), r.graph.value(r.in(0)).count()));
  r.emit_many("aten::" + name + ".dim", {r.tensor(0), a.axes[0], a.keep}, {r.out(), {}});
}

void maximum(Recovery& r) { extreme(r, "max"); }
void minimum(Recovery& r) { extreme(r, "min"); }
void log_sum_exp(Recovery& r) { reduce(r, "aten::logsumexp", ""); }

void product(Recovery& r) {
  const Axes a = axes_of(r);
  if (a.axes.size() == 1) {
    r.emit("aten::prod.dim_int", {r.tensor(0), a.axes[0], a.keep});
  } else {
    r.emit("aten::prod", {r.tensor(0)});
  }
}

void norm(Recovery& r, double order) {
  const Axes a = axes_of(r);
  r.emit("aten::linalg_vector_norm", {r.tensor(0), order, a.axes, a.keep});
}
void norm1(Recovery& r) { norm(r, 1); }
void norm2(Recovery& r) { norm(r, 2); }

void sum_of_squares(Recovery& r) {
  const Axes a = axes_of(r);
  const SlotId squares = r.call("aten::pow.Tensor_Scalar", {r.tensor(0), std::int64_t{2}},
                                std::string(r.graph.name(r.out())) + ".squares");
  r.emit("aten::sum.dim_IntList", {squares, a.axes, a.keep});
}

void log_sum(Recovery& r) {
  const Axes a = axes_of(r);
  const SlotId total =
      r.call("aten::sum.dim_IntList", {r.tensor(0), a.axes, a.keep}, std::string(r.graph.name(r.out())) + ".sum");
  r.emit("aten::log", {total});
}

constexpr std::array list{
    OperatorHandler{"ReduceMean", mean},      OperatorHandler{"ReduceSum", sum},
    OperatorHandler{"ReduceMax", maximum},    OperatorHandler{"ReduceMin", minimum},
    OperatorHandler{"ReduceProd", product},   OperatorHandler{"ReduceL1", norm1},
    OperatorHandler{"ReduceL2", norm2},       OperatorHandler{"ReduceSumSquare", sum_of_squares},
    OperatorHandler{"ReduceLogSum", log_sum}, OperatorHandler{"ReduceLogSumExp", log_sum_exp},
};

}  // namespace

OperatorFamily reduction_operators() { return list; }

}  // namespace headroom::recovery
