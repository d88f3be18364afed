// x[a:b, i] = y: what a program writes into part of a tensor, exporters write as a new tensor with indices.
#include <algorithm>
#include <array>
#include <numeric>
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
  Dims order;                    ///< what the file makes has the target's axes in this order; empty: in theirs
};

/// A value turned by Transposes: the source's axes in this order.
struct Turned {
  ValueId source;
  Dims order;
};

/// A scatter along an axis that a Transpose brought to the front: another turns it back.
bool is_turned_scatter(const GraphView& g, ValueId v) {
  const NodeIndex n = g.producer(v);
  return g.is(n, "ScatterND") && g.is(g.producer(g.input(n, 0)), "Transpose");
}

/// `whole`: what is written into; a turned scatter that was turned back is one.
Turned turned(const GraphView& g, ValueId v, bool whole = false) {
  Turned out{v, Dims(g.dims(v).size())};
  std::iota(out.order.begin(), out.order.end(), 0);
  for (NodeIndex n = g.producer(v); g.is(n, "Transpose"); n = g.producer(out.source)) {
    const auto perm = g.node(n).integers("perm");
    if (perm.size() != out.order.size() || (whole && is_turned_scatter(g, g.input(n, 0)))) break;
    for (auto& axis : out.order) axis = perm[static_cast<std::size_t>(axis)];
    out.source = g.input(n, 0);
  }
  return out;
}

/// Axes `second` of what has the axes `first`.
Dims composed(const Dims& first, const Dims& second) {
  Dims out;
  for (const std::int64_t axis : second) out.push_back(first[static_cast<std::size_t>(axis)]);
  return out;
}

bool in_order(const Dims& order) { return std::ranges::is_sorted(order); }

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
  if (const auto* all = g.integers(v); all && all->size() > 1) {
    // positions that the exporter has counted
    region.start = (*all)[0];
    region.step = (*all)[1] - (*all)[0];
    for (std::size_t i = 2; i < all->size(); ++i)
      if ((*all)[i] - (*all)[i - 1] != region.step) return std::nullopt;
    region.end = all->back() + 1;
    if (region.step < 1 || region.start < 0 || region.end > size) return std::nullopt;
    return region;
  }
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

/// The TorchScript exporter: ScatterND whose indices are grids of ranges, one a dimension.
std::optional<Assignment> with_grids(const GraphView& g, NodeIndex scatter) {
  const NodeIndex concat = g.producer(g.input(scatter, 1));
  if (!g.is(concat, "Concat")) return std::nullopt;
  Assignment out{g.input(scatter, 0), g.input(scatter, 2), {}, {}, {}, {}};
  const Dims& d = g.dims(out.target);
  const auto parts = g.inputs(concat);
  if (parts.size() > d.size()) return std::nullopt;
  for (std::size_t axis = 0; axis < parts.size(); ++axis) {
    const auto region = region_of(g, parts[axis], static_cast<std::int64_t>(axis), d[axis]);
    if (!region) return std::nullopt;
    if (region->selects || region->start > 0 || region->end < d[axis] || region->step != 1)
      out.regions.push_back(*region);
  }
  for (NodeIndex n = g.producer(out.value); g.is(n, "Reshape") || g.is(n, "Expand"); n = g.producer(out.value))
    out.value = g.input(n, 0);
  return out;
}

/// The dynamo exporter's slice_scatter: ScatterND along the first axis, the sliced one brought there. Its optimiser
/// makes one Transpose of two that follow each other.
struct SliceScatter {
  Turned target, value;
  std::optional<Region> region;  ///< none: all of it
};

std::optional<SliceScatter> slice_scatter_at(const GraphView& g, NodeIndex scatter) {
  if (!g.is(scatter, "ScatterND") || g.node(scatter).text("reduction", "none") != "none") return std::nullopt;
  SliceScatter out{turned(g, g.input(scatter, 0), true), turned(g, g.input(scatter, 2)), {}};
  const NodeIndex indices = g.producer(g.input(scatter, 1));
  if (!g.is(indices, "Unsqueeze") || out.target.order.empty()) return std::nullopt;
  const std::int64_t axis = out.target.order[0], size = g.dims(out.target.source)[static_cast<std::size_t>(axis)];
  const auto region = region_of(g, g.input(indices, 0), axis, size);
  if (!region || region->selects) return std::nullopt;
  if (region->start > 0 || region->end < size || region->step != 1) out.region = region;
  return out;
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

std::optional<Assignment> with_slice(const GraphView& g, NodeIndex last) {
  const Turned result = turned(g, g.output(last));
  const NodeIndex scatter = g.producer(result.source);
  const auto outer = slice_scatter_at(g, scatter);
  if (!outer) return std::nullopt;
  const bool straight = in_order(outer->target.order);
  if (straight != (scatter == last)) return std::nullopt;
  for (NodeIndex n = last; n != scatter; n = g.producer(g.input(n, 0)))
    if (n != last && g.only_reader(g.output(n)) == no_node) return std::nullopt;
  if (!straight && g.only_reader(g.output(scatter)) == no_node) return std::nullopt;
  Assignment out{outer->target.source, {}, {}, {}, {}, {}};
  if (outer->region) out.regions.push_back(*outer->region);
  if (Dims order = composed(outer->target.order, result.order); !in_order(order)) out.order = std::move(order);
  // y is written into the slice x[a:b], and that into x.
  Turned value = outer->value;
  Dims space = outer->target.order;
  constexpr int deepest = 8;
  for (int depth = 0; depth < deepest; ++depth) {
    const auto inner = slice_scatter_at(g, g.producer(value.source));
    if (!inner || inner->target.order.size() != space.size() || composed(inner->target.order, value.order) != space ||
        !is_view_of(g, inner->target.source, out.target))
      break;
    if (inner->region) {
      if (std::ranges::any_of(out.regions, [&](const Region& r) { return r.axis == inner->region->axis; })) break;
      out.regions.push_back(*inner->region);
    }
    value = inner->value;
    space = inner->target.order;
  }
  if (value.order != space) return std::nullopt;
  out.value = value.source;
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
  return Assignment{g.input(scatter, 0), g.input(value, 0), {*region}, {}, {}, {}};
}

std::optional<Assignment> assignment_at(const GraphView& g, NodeIndex n) {
  if (n != no_node && g.node(n).text("reduction", "none") != "none") return std::nullopt;
  if (g.is(n, "ScatterND"))
    if (const auto out = with_grids(g, n)) return out;
  if (g.is(n, "ScatterND") || g.is(n, "Transpose")) return with_slice(g, n);
  return g.is(n, "ScatterElements") ? with_select(g, n) : std::nullopt;
}

/// x[a:b, c:d] = y: the exporter writes y into the slice x[a:b], and that into x.
void add_inner(const GraphView& g, Assignment& a) {
  constexpr int deepest = 8;
  for (int depth = 0; depth < deepest; ++depth) {
    const auto inner = assignment_at(g, g.producer(a.value));
    if (!inner || !inner->order.empty() || !is_view_of(g, inner->target, a.target)) return;
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
    const auto is_copy = [&](const FxGroup& of) {
      const FxArg* x = of.fx.arg(0);
      return x && x->is_reference() && x->text.starts_with("clone") && !g.named(x->text).valid();
    };
    // x[:, i] is written into x[:], and that, which is nothing, into x.
    const auto readers = g.readers(g.output(n));
    return is_copy(*group) || std::ranges::any_of(readers, [&](NodeIndex reader) {
             const FxGroup* whole = g.is(reader, "Identity") ? r.origins.group_of(reader) : nullptr;
             return whole && whole->fx.target.starts_with("aten.slice_scatter") && is_copy(*whole);
           });
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

/// Views of x as Python's indexing makes them, then a copy into the last.
void emit(Recovery& r, Assignment a, NodeIndex n) {
  const GraphView& g = r.graph;
  const std::string name(g.name(g.output(n)));
  // Zeros of a shape that the exporter knows are a constant.
  const bool made = g.is_stored(a.target) && is_anonymous(g.name(a.target));
  SlotId x = made ? r.call("aten::zeros", {g.dims(a.target), r.dtype(a.target)}, name + ".zeros") : r.tensor(a.target);
  if (!made && (a.copies || r.parameters.is_parameter(x))) x = r.call("aten::clone", {x}, name + ".copy");
  std::ranges::sort(a.regions, {}, &Region::axis);
  SlotId part = x;
  Dims d = g.dims(a.target);
  std::int64_t selected = 0;
  for (const Region& region : a.regions) {
    const std::int64_t axis = region.axis - selected;
    if (region.selects) {
      part = r.call("aten::select.int", {part, axis, region.start}, name + ".part");
      d.erase(d.begin() + axis);
      ++selected;
      continue;
    }
    part = r.call("aten::slice.Tensor", {part, axis, region.start, region.end, region.step}, name + ".part");
    d[static_cast<std::size_t>(axis)] = (region.end - region.start + region.step - 1) / region.step;
  }
  if (a.number) {
    r.effect("aten::fill_.Scalar", {part, *a.number});
  } else {
    SlotId value = r.tensor(a.value);
    if (const Dims& given = g.dims(a.value); given != d)
      value = r.call(element_count(given) == element_count(d) ? "aten::reshape" : "aten::expand", {value, d},
                     name + ".value");
    r.effect("aten::copy_", {part, value});
  }
  if (!a.order.empty()) x = r.call("aten::permute", {x, a.order}, name);
  r.define(g.output(n), x);
}

/// The mask of x[mask] = …, whose places the exporters look up: NonZero, turned, of the mask expanded to x.
ValueId mask_of(const GraphView& g, NodeIndex scatter) {
  const NodeIndex turned_places = g.producer(g.input(scatter, 1));
  if (!g.is(turned_places, "Transpose")) return {};
  const NodeIndex places = g.producer(g.input(turned_places, 0));
  if (!g.is(places, "NonZero")) return {};
  ValueId mask = g.input(places, 0);
  const std::size_t rank = g.dims(g.input(scatter, 0)).size();
  if (g.dims(mask).size() != rank) return {};
  if (const NodeIndex n = g.producer(mask); g.is(n, "Expand")) mask = g.input(n, 0);
  for (NodeIndex n = g.producer(mask); g.is(n, "Unsqueeze") && g.dims(mask).back() == 1; n = g.producer(mask))
    mask = g.input(n, 0);
  return g.value(mask).dtype == DType::b8 ? mask : ValueId{};
}

/// x[mask] = value: of a number PyTorch fills where the mask is, else it looks the places up as well.
bool find_masked_assignment(Recovery& r, NodeIndex n) {
  const GraphView& g = r.graph;
  if (!g.is(n, "ScatterND") || g.node(n).text("reduction", "none") != "none") return false;
  const ValueId mask = mask_of(g, n), target = g.input(n, 0);
  if (!mask.valid()) return false;
  ValueId value = g.input(n, 2);
  for (NodeIndex made = g.producer(value); g.is(made, "Reshape") || g.is(made, "Expand") || g.is(made, "Slice");
       made = g.producer(value))
    value = g.input(made, 0);
  const auto number = g.is_weight(value) && g.value(value).count() > 1 ? std::nullopt : number_of(g, value);
  const bool copies = (r.origins.group_of(n) && was_copied(r, n, target)) || !is_last_reader(g, target, n);
  std::vector<ValueId> reads{target, mask};
  if (!number) reads.push_back(value);
  r.claim({n, std::move(reads), [&r, n, target, mask, value, number, copies] {
             const GraphView& graph = r.graph;
             const std::string name(graph.name(graph.output(n)));
             SlotId x = r.tensor(target), where = r.tensor(mask);
             if (copies || r.parameters.is_parameter(x)) x = r.call("aten::clone", {x}, name + ".copy");
             if (number) {
               for (std::size_t i = graph.dims(mask).size(); i < graph.dims(target).size(); ++i)
                 where = r.call("aten::unsqueeze", {where, std::int64_t{-1}}, name + ".mask");
               r.effect("aten::masked_fill_.Scalar", {x, where, *number});
             } else {
               // A token whose view was folded has no name of its own.
               const bool token = graph.is_weight(value) && is_anonymous(graph.name(value));
               const SlotId source = token ? r.parameters.trained(value, false, "token") : r.tensor(value);
               r.effect("aten::index_put_", {x, Slots{where}, source, false});
             }
             r.define(graph.output(n), x);
           }});
  return true;
}

void find_assignment(Recovery& r, NodeIndex n) {
  const GraphView& g = r.graph;
  if (find_masked_assignment(r, n)) return;
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
