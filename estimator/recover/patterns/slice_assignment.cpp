// x[a:b, i] = y: what a program writes into part of a tensor, exporters write as a new tensor with indices.
#include <algorithm>
#include <array>
#include <optional>

#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

struct Region {
  std::int64_t axis = 0, start = 0, end = 0, step = 1;
  bool selects = false;  ///< x[i]: the value lacks this axis
};

struct Assignment {
  ValueId target, value;
  std::vector<Region> regions;
  std::optional<double> number;  ///< instead of a value
  bool copies = false;           ///< x = x.clone() before
};

/// a:b:step of the positions `v` of an axis with `size` elements.
std::optional<Region> region_of(const GraphView& g, ValueId v, std::int64_t axis, std::int64_t size) {
  for (NodeIndex n = g.producer(v); g.is(n, "Unsqueeze") || g.is(n, "Expand") || g.is(n, "Reshape") || g.is(n, "Cast");
       n = g.producer(v))
    v = g.input(n, 0);
  if (const auto one = g.number(v)) {
    const auto i = static_cast<std::int64_t>(*one);
    return Region{axis, i < 0 ? i + size : i, (i < 0 ? i + size : i) + 1, 1, true};
  }
  Region region{axis, 0, size};
  if (const NodeIndex cut = g.producer(v); g.is(cut, "Slice")) {
    const auto starts = g.attribute_or_input(cut, "starts", 1), ends = g.attribute_or_input(cut, "ends", 2);
    const auto steps = g.attribute_or_input(cut, "steps", 4);
    if (!starts || !ends || starts->size() != 1 || ends->size() != 1) return std::nullopt;
    region.start = (*starts)[0] < 0 ? std::max<std::int64_t>(0, (*starts)[0] + size) : std::min((*starts)[0], size);
    region.end = (*ends)[0] < 0 ? (*ends)[0] + size : std::min((*ends)[0], size);
    region.step = steps && steps->size() == 1 ? (*steps)[0] : 1;
    v = g.input(cut, 0);
  }
  if (!g.is(g.producer(v), "Range") || g.value(v).count() != size || region.step < 1 || region.end <= region.start)
    return std::nullopt;
  return region;
}

/// Both exchange axis 0 and the same other one: that one. Nullopt: they do not.
std::optional<std::int64_t> exchanged_axis(const GraphView& g, NodeIndex transpose) {
  if (!g.is(transpose, "Transpose")) return std::nullopt;
  const auto perm = g.node(transpose).integers("perm");
  for (std::size_t axis = 1; axis < perm.size(); ++axis)
    if (perm[0] == static_cast<std::int64_t>(axis) && perm[axis] == 0) return static_cast<std::int64_t>(axis);
  return std::nullopt;
}

/// The TorchScript exporter: ScatterND whose indices are grids of ranges, one a dimension.
std::optional<Assignment> with_grids(const GraphView& g, NodeIndex scatter) {
  const NodeIndex concat = g.producer(g.input(scatter, 1));
  if (!g.is(concat, "Concat")) return std::nullopt;
  Assignment out{g.input(scatter, 0), g.input(scatter, 2), {}, {}, {}};
  const Dims& d = g.dims(out.target);
  const auto parts = g.inputs(concat);
  if (parts.size() > d.size()) return std::nullopt;
  for (std::size_t axis = 0; axis < parts.size(); ++axis) {
    const auto region = region_of(g, parts[axis], static_cast<std::int64_t>(axis), d[axis]);
    if (!region) return std::nullopt;
    if (region->selects || region->start > 0 || region->end < d[axis] || region->step != 1)
      out.regions.push_back(*region);
  }
  if (const NodeIndex n = g.producer(out.value); g.is(n, "Reshape") || g.is(n, "Expand")) out.value = g.input(n, 0);
  return out;
}

/// The dynamo exporter's slice_scatter: ScatterND along the first axis, the sliced one brought there and back.
std::optional<Assignment> with_slice(const GraphView& g, NodeIndex last) {
  NodeIndex scatter = last;
  std::int64_t axis = 0;
  if (g.is(last, "Transpose")) {
    const auto exchanged = exchanged_axis(g, last);
    scatter = g.producer(g.input(last, 0));
    if (!exchanged || !g.is(scatter, "ScatterND")) return std::nullopt;
    axis = *exchanged;
  }
  Assignment out{g.input(scatter, 0), g.input(scatter, 2), {}, {}, {}};
  if (axis) {
    const NodeIndex target = g.producer(out.target), value = g.producer(out.value);
    if (exchanged_axis(g, target) != axis || exchanged_axis(g, value) != axis) return std::nullopt;
    out.target = g.input(target, 0);
    out.value = g.input(value, 0);
  }
  const NodeIndex indices = g.producer(g.input(scatter, 1));
  if (!g.is(indices, "Unsqueeze")) return std::nullopt;
  const auto region = region_of(g, g.input(indices, 0), axis, g.dims(out.target)[static_cast<std::size_t>(axis)]);
  if (!region) return std::nullopt;
  if (region->start > 0 || region->end < g.dims(out.target)[static_cast<std::size_t>(axis)] || region->step != 1)
    out.regions.push_back(*region);
  return out;
}

/// The dynamo exporter's select_scatter.
std::optional<Assignment> with_select(const GraphView& g, NodeIndex scatter) {
  const NodeIndex index = g.producer(g.input(scatter, 1)), value = g.producer(g.input(scatter, 2));
  if (!g.is(index, "Expand") || !g.is(value, "Unsqueeze")) return std::nullopt;
  const Dims& d = g.dims(g.input(scatter, 0));
  std::int64_t axis = g.node(scatter).integer("axis", 0);
  if (axis < 0) axis += std::ssize(d);
  const auto region = region_of(g, g.input(index, 0), axis, d[static_cast<std::size_t>(axis)]);
  if (!region || !region->selects) return std::nullopt;
  return Assignment{g.input(scatter, 0), g.input(value, 0), {*region}, {}, {}};
}

std::optional<Assignment> assignment_at(const GraphView& g, NodeIndex n) {
  if (n != no_node && g.node(n).text("reduction", "none") != "none") return std::nullopt;
  if (g.is(n, "ScatterND"))
    if (const auto out = with_grids(g, n)) return out;
  if (g.is(n, "ScatterND") || g.is(n, "Transpose")) return with_slice(g, n);
  return g.is(n, "ScatterElements") ? with_select(g, n) : std::nullopt;
}

/// Whether `part` is a view of `whole`.
bool is_view_of(const GraphView& g, ValueId part, ValueId whole) {
  while (part.valid() && part != whole) {
    const NodeIndex n = g.producer(part);
    if (!g.is(n, "Slice") && !g.is(n, "Gather")) return false;
    part = g.input(n, 0);
  }
  return part.valid();
}

/// x[a:b, c:d] = y: the exporter writes y into the slice x[a:b], and that into x.
void add_inner(const GraphView& g, Assignment& a) {
  constexpr int deepest = 8;
  for (int depth = 0; depth < deepest; ++depth) {
    const auto inner = assignment_at(g, g.producer(a.value));
    if (!inner || !is_view_of(g, inner->target, a.target)) return;
    for (Region region : inner->regions) {
      for (const Region& outer : a.regions) region.axis += outer.selects && outer.axis <= region.axis;
      const bool again = std::ranges::any_of(a.regions, [&](const Region& outer) { return outer.axis == region.axis; });
      if (again) return;
      a.regions.push_back(region);
    }
    a.value = inner->value;
  }
}

/// Nothing reads the old value after `n`: it may be written into.
bool is_last_reader(const GraphView& g, ValueId v, NodeIndex n) {
  return g.producer(v) != no_node && !g.is_output(v) &&
         std::ranges::all_of(g.readers(v), [&](NodeIndex reader) { return reader <= n || g.is(reader, "Shape"); });
}

/// What is written into was copied before, unless the program made it for that: the exporters drop the copy.
bool was_copied(const Recovery& r, NodeIndex n, ValueId target) {
  const GraphView& g = r.graph;
  if (const FxGroup* group = r.origins.group_of(n)) {
    const FxArg* x = group->fx.arg(0);
    return x && x->is_reference() && x->text.starts_with("clone") && !g.named(x->text).valid();
  }
  const NodeIndex made = g.producer(target);
  return !g.is(made, "ConstantOfShape") && !g.is(made, "Expand") && !assignment_at(g, made);
}

/// The number that every element of `v` is.
std::optional<double> number_of(const GraphView& g, ValueId v) {
  for (NodeIndex n = g.producer(v); g.is(n, "Expand") || g.is(n, "Cast") || g.is(n, "CastLike") || g.is(n, "Reshape");
       n = g.producer(v))
    v = g.input(n, 0);
  if (const auto number = g.number(v)) return number;
  return g.is_stored(v) && !g.initializer(v) ? std::optional(0.0) : std::nullopt;
}

/// x.index_put_(…): it saves the indices, and its backward copies the gradient and the part, as that of a copy into a
/// view does.
void emit(Recovery& r, Assignment a, NodeIndex n) {
  const GraphView& g = r.graph;
  const std::string name(g.name(g.output(n)));
  SlotId x = r.tensor(a.target);
  if (a.copies || r.parameters.is_parameter(x)) x = r.call("aten::clone", {x}, name + ".copy");
  const Dims& d = g.dims(a.target);
  std::ranges::sort(a.regions, {}, &Region::axis);
  const auto positions = [&](const Region& region) {
    return r.call("aten::arange.start_step", {region.start, region.end, region.step, DType::i64}, name + ".positions");
  };
  if (a.number && a.regions.size() == 1) {
    r.effect("aten::index_fill_.int_Scalar", {x, a.regions[0].axis, positions(a.regions[0]), *a.number});
    return r.define(g.output(n), x);
  }
  // An axis between two indexed ones is indexed too, so that the axes of the result keep their order.
  std::vector<Region> all;
  for (const Region& region : a.regions) {
    while (!all.empty() && all.back().axis + 1 < region.axis) {
      const std::int64_t axis = all.back().axis + 1;
      all.push_back({axis, 0, d[static_cast<std::size_t>(axis)]});
    }
    all.push_back(region);
  }
  Slots indices(static_cast<std::size_t>(all.front().axis));
  for (const Region& region : all) {
    SlotId index = positions(region);
    if (const std::int64_t behind = all.back().axis - region.axis; behind > 0) {
      Dims shape(static_cast<std::size_t>(behind) + 1, 1);
      shape[0] = -1;
      index = r.call("aten::view", {index, shape}, name + ".positions.view");
    }
    indices.push_back(index);
  }
  SlotId value =
      a.number ? r.call("aten::scalar_tensor", {*a.number, r.dtype(a.target)}, name + ".value") : r.tensor(a.value);
  std::int64_t rank = a.number ? 0 : std::ssize(g.dims(a.value));
  for (auto region = all.rbegin(); region != all.rend(); ++region) {
    const std::int64_t behind = std::ssize(d) - 1 - region->axis;
    if (!region->selects || rank <= behind || rank >= std::ssize(d)) continue;
    value = r.call("aten::unsqueeze", {value, -behind - 1}, name + ".value");
    ++rank;
  }
  r.effect("aten::index_put_", {x, indices, value, false});
  r.define(g.output(n), x);
}

void find_assignment(Recovery& r, NodeIndex n) {
  const GraphView& g = r.graph;
  auto a = assignment_at(g, n);
  if (!a) return;
  add_inner(g, *a);
  if (a->regions.empty()) return;
  a->copies = was_copied(r, n, a->target);
  if (!a->copies && !is_last_reader(g, a->target, n)) return;
  a->number = number_of(g, a->value);
  std::vector<ValueId> reads{a->target};
  if (!a->number) reads.push_back(a->value);
  r.claim({n, std::move(reads), [&r, a = *a, n] { emit(r, a, n); }});
}

constexpr std::array list{Pattern{"ScatterND", find_assignment}, Pattern{"ScatterElements", find_assignment},
                          Pattern{"Transpose", find_assignment}};

}  // namespace

PatternFamily slice_assignment_patterns() { return list; }

}  // namespace headroom::recovery
