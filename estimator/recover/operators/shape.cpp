// Views and copies: reshape, transpose, slice, concatenate, split, pad.
#include <algorithm>
#include <array>
#include <numeric>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

std::int64_t whole(std::int64_t axis, std::size_t rank) {
  return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
}

void reshape(Recovery& r) { r.emit("aten::reshape", {r.tensor(0), r.out_dims()}); }

void flatten(Recovery& r) {
  // The operator's result has two dimensions, whatever stands before the axis.
  if (r.onnx().integer("axis", 1) == 1 && r.dims(r.in(0)).size() > 1) {
    r.emit("aten::flatten.using_ints", {r.tensor(0), std::int64_t{1}});
  } else {
    reshape(r);
  }
}

void transpose(Recovery& r) {
  const std::size_t rank = r.out_dims().size();
  Dims order;
  const auto given = r.onnx().integers("perm");
  for (std::size_t i = 0; i < rank; ++i)
    order.push_back(given.empty() ? static_cast<std::int64_t>(rank - 1 - i) : given[i]);
  Dims moved;
  for (std::size_t i = 0; i < rank; ++i)
    if (order[i] != static_cast<std::int64_t>(i)) moved.push_back(static_cast<std::int64_t>(i));
  if (moved.empty()) return r.alias(r.out(), r.in(0));
  if (moved.size() == 2) {
    r.emit("aten::transpose.int", {r.tensor(0), moved[0], moved[1]});
  } else {
    r.emit("aten::permute", {r.tensor(0), order});
  }
}

/// One view an axis, as Python writes them.
void one_by_one(Recovery& r, std::string_view op, const Dims& axes) {
  if (axes.empty()) return r.alias(r.out(), r.in(0));
  SlotId x = r.tensor(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i + 1 == axes.size()) {
      r.emit(op, {x, axes[i]});
    } else {
      x = r.call(op, {x, axes[i]}, std::string(r.graph.name(r.out())) + "." + std::to_string(i));
    }
  }
}

void unsqueeze(Recovery& r) {
  Dims axes = r.graph.attribute_or_input(r.node(), "axes", 1).value_or(Dims{0});
  for (auto& a : axes) a = whole(a, r.out_dims().size());
  std::sort(axes.begin(), axes.end());
  one_by_one(r, "aten::unsqueeze", axes);
}

void squeeze(Recovery& r) {
  const Dims& in = r.dims(r.in(0));
  auto given = r.graph.attribute_or_input(r.node(), "axes", 1);
  if (!given) return (void)r.emit("aten::squeeze", {r.tensor(0)});
  Dims axes;
  for (const auto a : *given) axes.push_back(whole(a, in.size()));
  std::sort(axes.rbegin(), axes.rend());
  one_by_one(r, "aten::squeeze.dim", axes);
}

void expand(Recovery& r) {
  const Arg x = r.operand(0);
  if (!std::holds_alternative<SlotId>(x)) {
    r.emit("aten::full", {r.out_dims(), x, r.dtype(r.out())});
  } else if (r.dims(r.in(0)) == r.out_dims()) {
    r.alias(r.out(), r.in(0));
  } else {
    r.emit("aten::expand", {x, r.out_dims()});
  }
}

void concat(Recovery& r) {
  const std::size_t n = r.onnx().inputs.size();
  if (n == 1) return r.alias(r.out(), r.in(0));
  Slots parts;
  for (std::size_t i = 0; i < n; ++i) parts.push_back(r.tensor(i));
  r.emit("aten::cat", {parts, r.onnx().integer("axis", 0)});
}

void split(Recovery& r) {
  const std::int64_t axis = r.onnx().integer("axis", 0);
  const std::size_t at = static_cast<std::size_t>(whole(axis, r.dims(r.in(0)).size()));
  Dims sizes;
  std::vector<ValueId> outputs;
  for (const ValueId o : r.onnx().outputs) {
    outputs.push_back(o);
    sizes.push_back(o.valid() ? r.dims(o)[at] : 0);
  }
  const bool even =
      std::all_of(sizes.begin(), sizes.end() - 1, [&](auto s) { return s == sizes[0]; }) && sizes.back() <= sizes[0];
  if (even) {
    r.emit_many("aten::split.Tensor", {r.tensor(0), sizes[0], axis}, outputs);
  } else {
    r.emit_many("aten::split_with_sizes", {r.tensor(0), sizes, axis}, outputs);
  }
}

struct SliceOfAxis {
  std::int64_t axis, start, end, step;
};

void slice(Recovery& r) {
  const Dims& in = r.dims(r.in(0));
  const Dims& out = r.out_dims();
  const auto starts = r.graph.attribute_or_input(r.node(), "starts", 1);
  const auto ends = r.graph.attribute_or_input(r.node(), "ends", 2);
  if (!starts || !ends) {
    // A length that depends on data: the binder gave the largest.
    SlotId x = r.tensor(0);
    for (std::size_t d = 0; d < in.size() && d < out.size(); ++d)
      if (in[d] != out[d])
        x = r.call("aten::slice.Tensor", {x, static_cast<std::int64_t>(d), std::int64_t{0}, out[d]},
                   std::string(r.graph.name(r.out())));
    return r.define(r.out(), x);
  }
  Dims axes = r.graph.attribute_or_input(r.node(), "axes", 3).value_or(Dims{});
  const auto steps = r.graph.attribute_or_input(r.node(), "steps", 4);
  if (axes.empty())
    for (std::size_t i = 0; i < starts->size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  std::vector<SliceOfAxis> cuts;
  for (std::size_t i = 0; i < axes.size() && i < starts->size() && i < ends->size(); ++i) {
    const std::int64_t axis = whole(axes[i], in.size()), size = in[static_cast<std::size_t>(axis)];
    const std::int64_t step = steps && i < steps->size() ? (*steps)[i] : 1;
    std::int64_t start = (*starts)[i], end = (*ends)[i];
    if (step < 0) {
      cuts.push_back({axis, start, end, step});
      continue;
    }
    if (start < 0) start = std::max<std::int64_t>(0, start + size);
    if (end < 0) end += size;
    end = std::min(end, size);
    // x[:] is x itself: Python makes no view of it.
    if (start > 0 || end < size || step != 1) cuts.push_back({axis, start, end, step});
  }
  if (cuts.empty()) return r.alias(r.out(), r.in(0));
  SlotId x = r.tensor(0);
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const SliceOfAxis& c = cuts[i];
    const bool last = i + 1 == cuts.size();
    std::string name(r.graph.name(r.out()));
    if (!last) name += "." + std::to_string(i);
    x = c.step < 0 ? r.call("aten::flip", {x, Dims{c.axis}}, std::move(name))
                   : r.call("aten::slice.Tensor", {x, c.axis, c.start, c.end, c.step}, std::move(name));
  }
  r.define(r.out(), x);
}

void tile(Recovery& r) {
  const auto* repeats = r.graph.integers(r.in(1));
  Dims times;
  for (std::size_t d = 0; d < r.out_dims().size(); ++d) {
    const std::int64_t size = r.dims(r.in(0))[d];
    times.push_back(repeats ? (*repeats)[d] : size ? r.out_dims()[d] / size : 1);
  }
  r.emit("aten::repeat", {r.tensor(0), times});
}

void pad(Recovery& r) {
  const std::size_t rank = r.out_dims().size();
  const auto given = r.graph.attribute_or_input(r.node(), "pads", 1);
  const auto axes = r.graph.attribute_or_input(r.node(), "axes", 3);
  Dims before(rank, 0), after(rank, 0);
  if (given) {
    const std::size_t n = given->size() / 2;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t d = axes ? static_cast<std::size_t>(whole((*axes)[i], rank)) : i;
      before[d] = (*given)[i];
      after[d] = (*given)[i + n];
    }
  } else {
    for (std::size_t d = 0; d < rank; ++d) after[d] = r.out_dims()[d] - r.dims(r.in(0))[d];
  }
  // PyTorch lists pads from the last dimension on, and leaves out the leading dimensions that have none.
  Dims pads;
  std::size_t first = 0;
  while (first < rank && before[first] == 0 && after[first] == 0) ++first;
  if (first == rank) return r.alias(r.out(), r.in(0));
  for (std::size_t d = rank; d-- > first;) {
    pads.push_back(before[d]);
    pads.push_back(after[d]);
  }
  const std::string_view mode = r.onnx().text("mode", "constant");
  const auto value = r.has(2) ? r.graph.number(r.in(2)) : std::nullopt;
  if (mode == "constant") {
    r.emit("aten::constant_pad_nd", {r.tensor(0), pads, value.value_or(r.onnx().real("value", 0.0))});
  } else {
    r.emit("aten::pad", {r.tensor(0), pads,
                         Text{mode == "edge"   ? "replicate"
                              : mode == "wrap" ? "circular"
                                               : "reflect"}});
  }
}

constexpr std::array list{
    OperatorHandler{"Reshape", reshape},
    OperatorHandler{"Flatten", flatten},
    OperatorHandler{"Transpose", transpose},
    OperatorHandler{"Unsqueeze", unsqueeze},
    OperatorHandler{"Squeeze", squeeze},
    OperatorHandler{"Expand", expand},
    OperatorHandler{"Concat", concat},
    OperatorHandler{"Split", split},
    OperatorHandler{"Slice", slice},
    OperatorHandler{"Tile", tile},
    OperatorHandler{"Pad", pad},
};

}  // namespace

OperatorFamily shape_operators() { return list; }

}  // namespace headroom::recovery
