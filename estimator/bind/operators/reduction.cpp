// Operators that reduce along axes, or run along one and keep the shape.
#include <algorithm>

#include "estimator/bind/fold.h"
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

/// Dims after reducing the marked axes.
Dims reduced_dims(const Dims& d, const std::vector<bool>& gone, bool keep) {
  Dims result;
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (!gone[i])
      result.push_back(d[i]);
    else if (keep)
      result.push_back(1);
  }
  return result;
}

/// Reduce*: axes by attribute before opset 13 (ReduceSum) or 18, by input after; none means all, unless
/// noop_with_empty_axes. `combine(r, v)` folds integers and says whether it could.
template <class Combine>
void reduce(const NodeShaper& op, std::int64_t identity, Combine combine) {
  const ShapedValue& x = op.tensor(0);
  const Dims& d = x.dims;
  std::vector<bool> gone(d.size());
  if (op.has(1) && !op.integers(1)) {
    const Dims& axes = op.dims(1);
    const bool keep_all = op.node().integer("keepdims", 1) != 0;
    if (!keep_all && element_count(axes) != std::ssize(d)) op.needed_integers(1, "axes");
    if (!keep_all) {
      op.set(0, x.dtype, {});
      return;
    }
    Dims largest = d;
    for (auto& size : largest) size = std::max<std::int64_t>(size, 1);
    op.set(0, x.dtype, std::move(largest));
    return op.bounded("the axes depend on data");
  }
  const auto given = op.attribute_or_input("axes", 1);
  if (given && !given->empty()) {
    for (const auto a : op.axes(*given, d.size())) gone[static_cast<std::size_t>(a)] = true;
  } else if (op.node().integer("noop_with_empty_axes", 0) != 0) {
    return op.same_shape(0, 0);
  } else {
    gone.assign(d.size(), true);
  }
  const bool keep = op.node().integer("keepdims", 1) != 0;
  ShapedValue* out = op.set(0, x.dtype, reduced_dims(d, gone, keep));
  // x[mask] = value: the exporter counts what a mask of unknown contents chooses.
  if (out && !x.contents && op.node().op_type == "ReduceSum" && out->count() == 1 && x.dtype == DType::i64 &&
      op.node().metadata.fx_node.find("aten.index_put") != std::string_view::npos) {
    op.set_known(0, x.dtype, Dims(out->dims), Integers{x.count()});
    return op.bounded("how many elements a mask chooses depends on data");
  }
  if (!out || !x.contents || is_float(x.dtype) || x.count() == 0) return;
  const Dims kept = reduced_dims(d, gone, true);
  Dims strides = strides_of(kept);
  for (std::size_t i = 0; i < d.size(); ++i)
    if (gone[i]) strides[i] = 0;
  const Integers target = strided_elements(d, strides);
  Integers result(static_cast<std::size_t>(element_count(kept)), identity);
  for (std::size_t i = 0; i < target.size(); ++i) {
    auto& r = result[static_cast<std::size_t>(target[i])];
    if (!combine(r, x.contents->integers[i])) return;
  }
  for (auto& r : result) r = wrapped(x.dtype, r);
  out->contents = known(std::move(result));
}

bool add_to(std::int64_t& r, std::int64_t v) { return !__builtin_add_overflow(r, v, &r); }
bool multiply_into(std::int64_t& r, std::int64_t v) { return !__builtin_mul_overflow(r, v, &r); }
bool not_folded(std::int64_t&, std::int64_t) { return false; }

void reduce_any(const NodeShaper& op) { reduce(op, 0, not_folded); }
void reduce_sum(const NodeShaper& op) { reduce(op, 0, add_to); }
void reduce_prod(const NodeShaper& op) { reduce(op, 1, multiply_into); }
void reduce_max(const NodeShaper& op) {
  reduce(op, INT64_MIN, [](std::int64_t& r, std::int64_t v) {
    r = std::max(r, v);
    return true;
  });
}
void reduce_min(const NodeShaper& op) {
  reduce(op, INT64_MAX, [](std::int64_t& r, std::int64_t v) {
    r = std::min(r, v);
    return true;
  });
}

/// ArgMax, ArgMin.
void arg_reduce(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  std::vector<bool> gone(d.size());
  if (!d.empty()) gone[op.axis(op.node().integer("axis", 0), d.size())] = true;
  op.set(0, DType::i64, reduced_dims(d, gone, op.node().integer("keepdims", 1) != 0));
}

/// CumSum, CumProd.
template <class Combine>
void cumulate(const NodeShaper& op, std::int64_t identity, Combine combine) {
  const ShapedValue& x = op.tensor(0);
  ShapedValue* out = op.set(0, x.dtype, x.dims);
  const Integers* axis_input = op.integers(1);
  if (!out || !x.contents || is_float(x.dtype) || !axis_input || axis_input->size() != 1) return;
  const std::size_t axis = op.axis((*axis_input)[0], x.dims.size());
  const bool exclusive = op.node().integer("exclusive", 0) != 0, reverse = op.node().integer("reverse", 0) != 0;
  const std::int64_t stride = strides_of(x.dims)[axis], length = x.dims[axis];
  Integers values = x.contents->integers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (at / stride % length != 0) continue;
    std::int64_t running = identity;
    for (std::int64_t j = 0; j < length; ++j) {
      auto& v = values[static_cast<std::size_t>(at + (reverse ? length - 1 - j : j) * stride)];
      const std::int64_t before = running;
      if (!combine(running, v)) return;
      v = wrapped(x.dtype, exclusive ? before : running);
    }
  }
  out->contents = known(std::move(values));
}
void cum_sum(const NodeShaper& op) { cumulate(op, 0, add_to); }
void cum_prod(const NodeShaper& op) { cumulate(op, 1, multiply_into); }

/// Softmax, LogSoftmax, Hardmax, LpNormalization: along an axis, the shape stays.
void along_axis(const NodeShaper& op) {
  if (const Attribute* a = op.node().attribute("axis"); a && op.rank(0) > 0) op.axis(a->integer, op.rank(0));
  op.same_shape(0, 0);
}

constexpr OperatorRule rules[] = {
    {"ReduceL1", reduce_any},     {"ReduceL2", reduce_any},
    {"ReduceLogSum", reduce_any}, {"ReduceLogSumExp", reduce_any},
    {"ReduceMean", reduce_any},   {"ReduceSumSquare", reduce_any},
    {"ReduceSum", reduce_sum},    {"ReduceProd", reduce_prod},
    {"ReduceMax", reduce_max},    {"ReduceMin", reduce_min},
    {"ArgMax", arg_reduce},       {"ArgMin", arg_reduce},
    {"CumSum", cum_sum},          {"CumProd", cum_prod},
    {"Softmax", along_axis},      {"LogSoftmax", along_axis},
    {"Hardmax", along_axis},      {"LpNormalization", along_axis},
};

}  // namespace

std::span<const OperatorRule> reduction_rules() { return rules; }

}  // namespace headroom
