// torch.roll, torch.chunk, torch.index_add, and copies that the file has lost: of the packed projection of
// nn.MultiheadAttention, of maps made of tokens.
#include <algorithm>
#include <array>

#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

struct Cut {
  ValueId source;
  std::int64_t axis = 0, start = 0, end = 0;
};

std::optional<Cut> cut_of(const GraphView& g, ValueId v) {
  const NodeIndex n = g.producer(v);
  if (!g.is(n, "Slice") || g.only_reader(v) == no_node) return std::nullopt;
  const auto starts = g.attribute_or_input(n, "starts", 1), ends = g.attribute_or_input(n, "ends", 2),
             axes = g.attribute_or_input(n, "axes", 3);
  if (!starts || !ends || !axes || axes->size() != 1) return std::nullopt;
  Cut c{g.input(n, 0), (*axes)[0], (*starts)[0], (*ends)[0]};
  const Dims& d = g.dims(c.source);
  if (c.axis < 0) c.axis += static_cast<std::int64_t>(d.size());
  const std::int64_t size = d[static_cast<std::size_t>(c.axis)];
  if (c.start < 0) c.start += size;
  if (c.end < 0) c.end += size;
  c.end = std::min(c.end, size);
  return c;
}

/// Two complementary slices of one tensor, put together the other way round.
void find_roll(Recovery& r, NodeIndex n) {
  const GraphView& g = r.graph;
  if (g.node(n).inputs.size() != 2) return;
  const auto a = cut_of(g, g.input(n, 0)), b = cut_of(g, g.input(n, 1));
  if (!a || !b || a->source != b->source || a->axis != b->axis) return;
  const Dims& d = g.dims(a->source);
  std::int64_t axis = g.node(n).integer("axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(d.size());
  if (axis != a->axis || a->start != b->end || b->start != 0 || a->end != d[static_cast<std::size_t>(axis)]) return;
  const std::int64_t shift = d[static_cast<std::size_t>(axis)] - a->start;
  r.claim({n, {a->source}, [&r, x = a->source, axis, shift] {
             r.emit("aten::roll", {r.tensor(x), Dims{shift}, Dims{axis}});
           }});
}

/// torch.stack: each part gets the new dimension before they are put together along it.
void find_stack(Recovery& r, NodeIndex concat) {
  const GraphView& g = r.graph;
  const ValueId y = g.output(concat);
  if (r.is_host(y) || g.node(concat).inputs.size() < 2) return;
  const std::int64_t rank = std::ssize(g.dims(y)), given = g.node(concat).integer("axis", 0);
  const std::int64_t axis = given < 0 ? given + rank : given;
  std::vector<ValueId> parts;
  for (const ValueId input : g.inputs(concat)) {
    const NodeIndex n = g.producer(input);
    if (!g.is(n, "Unsqueeze") || g.only_reader(input) != concat || !r.is_free(n)) return;
    const auto axes = g.attribute_or_input(n, "axes", 1);
    if (!axes || axes->size() != 1 || ((*axes)[0] < 0 ? (*axes)[0] + rank : (*axes)[0]) != axis) return;
    if (!r.origins.same_scope(n, concat)) return;
    parts.push_back(g.input(n, 0));
  }
  r.claim({concat, parts, [&r, parts, axis] {
             Slots slots;
             for (const ValueId p : parts) slots.push_back(r.tensor(p));
             r.emit("aten::stack", {slots, axis});
           }});
}

/// proj.unflatten(-1, (3, E)).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous(): the file has lost `contiguous`,
/// which copies the whole projection.
void find_packed_projection(Recovery& r, NodeIndex squeeze) {
  const GraphView& g = r.graph;
  const NodeIndex transpose = g.producer(g.input(squeeze, 0));
  if (!g.is(transpose, "Transpose") || !g.is(g.producer(g.input(transpose, 0)), "Unsqueeze")) return;
  int parts = 0;  // q, k and v, or k and v of cross attention
  for (const NodeIndex reader : g.readers(g.output(squeeze)))
    if (g.is(reader, "Gather")) {
      const auto i = g.number(g.input(reader, 1));
      parts += i && *i >= 0 && *i <= 2;
    }
  if ((parts != 2 && parts != 3) || g.dims(g.output(squeeze))[0] != parts) return;
  const auto axes = g.attribute_or_input(squeeze, "axes", 1);
  if (!axes || axes->size() != 1) return;
  r.claim({squeeze, {g.input(squeeze, 0)}, [&r, x = g.input(squeeze, 0), axis = (*axes)[0]] {
             const SlotId s =
                 r.call("aten::squeeze.dim", {r.tensor(x), axis}, std::string(r.graph.name(r.out())) + ".view");
             r.emit("aten::contiguous", {s});
           }});
}

/// tokens.reshape(B, H, W, C).permute(0, 3, 1, 2).contiguous(): so pyramids of transformers hand maps to convolutions,
/// and the file has lost `contiguous`.
void find_map_of_tokens(Recovery& r, NodeIndex transpose) {
  const GraphView& g = r.graph;
  const NodeIndex reshape = g.producer(g.input(transpose, 0));
  if (r.origins.has_text() || !std::ranges::equal(g.node(transpose).integers("perm"), std::array{0, 3, 1, 2}) ||
      !g.is(reshape, "Reshape") || g.dims(g.input(reshape, 0)).size() != 3)
    return;
  r.restore_call(g.output(transpose), "contiguous", {});
}

/// "self.conv_shortcut(x.contiguous())" of diffusers' residual blocks in training: what attention made has channels
/// last.
void find_copied_shortcut(Recovery& r, NodeIndex conv) {
  const ValueId x = r.graph.input(conv, 0);
  if (!r.options.training || r.origins.has_text() || !x.valid()) return;
  if (!r.origins.module(conv).ends_with(".conv_shortcut")) return;
  r.override_operand(conv, x, [&r, x] {
    return r.call("aten::contiguous", {r.tensor(x)}, std::string(r.graph.name(x)) + ".contiguous");
  });
}

/// The exporter of x.chunk(n) writes one Slice a part, each beginning at the value where the one before it ended.
void find_chunks(Recovery& r, NodeIndex first) {
  const GraphView& g = r.graph;
  const ValueId x = g.input(first, 0);
  const auto axes = g.attribute_or_input(first, "axes", 3);
  const auto* start = g.integers(g.input(first, 1));
  if (!axes || axes->size() != 1 || !start || (*start)[0] != 0 || !g.is(g.producer(g.input(first, 2)), "Mul")) return;
  const std::size_t axis = static_cast<std::size_t>((*axes)[0] < 0 ? (*axes)[0] + std::ssize(g.dims(x)) : (*axes)[0]);
  std::vector<ValueId> parts{g.output(first)};
  std::vector<NodeIndex> nodes{first};
  std::int64_t covered = g.dims(parts[0])[axis];
  for (const NodeIndex n : g.readers(x)) {
    if (!g.is(n, "Slice") || g.input(n, 1) != g.input(nodes.back(), 2) || !r.is_free(n)) continue;
    nodes.push_back(n);
    parts.push_back(g.output(n));
    covered += g.dims(parts.back())[axis];
  }
  if (parts.size() < 2 || covered != g.dims(x)[axis]) return;
  const auto size = g.dims(parts[0])[axis];
  r.claim({first, {x}, [&r, x, parts, size, axis] {
             r.emit_many("aten::split.Tensor", {r.tensor(x), size, static_cast<std::int64_t>(axis)}, parts);
           }});
  for (std::size_t i = 1; i < nodes.size(); ++i) r.claim({nodes[i], {parts[0]}, [] {}});
}

/// x.index_add(dim, index, source): the exporter adds what it scatters into zeros at the expanded index.
void find_index_add(Recovery& r, NodeIndex add) {
  const GraphView& g = r.graph;
  for (const ValueId scattered : g.inputs(add)) {
    const NodeIndex scatter = g.producer(scattered);
    if (!g.is(scatter, "ScatterElements") || g.only_reader(scattered) != add ||
        g.producer_op(g.input(scatter, 0)) != "ConstantOfShape")
      continue;
    const NodeIndex expand = g.producer(g.input(scatter, 1));
    if (!g.is(expand, "Expand")) continue;
    ValueId index = g.input(expand, 0);
    while (g.producer_op(index) == "Unsqueeze") index = g.input(g.producer(index), 0);
    if (g.dims(index).size() != 1) continue;
    const ValueId self = g.other_input(add, scattered), source = g.input(scatter, 2);
    r.claim({add, {self, index, source}, [&r, self, index, source, axis = g.node(scatter).integer("axis", 0)] {
               r.emit("aten::index_add", {r.tensor(self), axis, r.tensor(index), r.tensor(source)});
             }});
    return;
  }
}

/// Adds the strides that the sum `v` of positions times strides gives each axis of an as_strided; false: it is another.
bool collect_strides(const GraphView& g, ValueId v, Dims& strides) {
  const NodeIndex n = g.producer(v);
  if (g.is(n, "Add"))
    return collect_strides(g, g.input(n, 0), strides) &&
           (g.number(g.input(n, 1)) || collect_strides(g, g.input(n, 1), strides));
  ValueId positions = v;
  double stride = 1;
  if (g.is(n, "Mul")) {
    const auto number = g.number(g.input(n, 1));
    if (!number) return false;
    positions = g.input(n, 0);
    stride = *number;
  }
  const Dims& d = g.dims(positions);
  NodeIndex made = g.producer(positions);
  while (g.is(made, "Reshape") || g.is(made, "Squeeze") || g.is(made, "Transpose") || g.is(made, "Cast"))
    made = g.producer(g.input(made, 0));
  if (!g.is(made, "NonZero") || d.size() != strides.size()) return false;
  const auto axis = std::ranges::find_if(d, [](std::int64_t size) { return size != 1; });
  if (axis != d.end()) strides[static_cast<std::size_t>(axis - d.begin())] = static_cast<std::int64_t>(stride);
  return true;
}

/// x.as_strided(size, stride): the exporter gathers from the flat tensor.
void find_as_strided(Recovery& r, NodeIndex gather) {
  const GraphView& g = r.graph;
  const NodeIndex flat = g.producer(g.input(gather, 0));
  if (g.node(gather).integer("axis", 0) != 0 || !g.is(flat, "Reshape") || g.dims(g.input(gather, 0)).size() != 1)
    return;
  const Dims& size = g.dims(g.output(gather));
  Dims strides(size.size(), 1);
  if (size.size() < 2 || !collect_strides(g, g.input(gather, 1), strides)) return;
  const ValueId x = g.input(flat, 0);
  r.claim({gather, {x}, [&r, x, size, strides] { r.emit("aten::as_strided", {r.tensor(x), size, strides}); }});
}

/// w_q, w_kv = in_proj_weight.split([E, 2 * E]) of nn.MultiheadAttention, where keys are not the queries.
void find_split_projection(Recovery& r, NodeIndex first) {
  const GraphView& g = r.graph;
  const ValueId x = g.input(first, 0);
  const std::string_view name = g.name(x);
  if (!g.is_weight(x) || !(name.ends_with("in_proj_weight") || name.ends_with("in_proj_bias"))) return;
  const auto head = cut_of(g, g.output(first));
  if (!head || head->axis != 0 || head->start != 0) return;
  for (const NodeIndex second : g.readers(x)) {
    const auto tail = cut_of(g, g.output(second));
    if (!tail || tail->axis != 0 || tail->start != head->end || tail->end != g.dims(x)[0] || !r.is_free(second) ||
        !r.origins.same_scope(first, second))
      continue;
    r.claim({first,
             {x},
             [&r, x, sizes = Dims{head->end, tail->end - tail->start},
              parts = std::vector{g.output(first), g.output(second)}] {
               r.emit_many("aten::split_with_sizes", {r.tensor(x), sizes, std::int64_t{0}}, parts);
             }});
    return r.claim({second, {g.output(first)}, [] {}});
  }
}

constexpr std::array list{Pattern{"Slice", find_chunks},
                          Pattern{"Slice", find_split_projection},
                          Pattern{"Add", find_index_add},
                          Pattern{"Gather", find_as_strided},
                          Pattern{"Concat", find_roll},
                          Pattern{"Concat", find_stack},
                          Pattern{"Squeeze", find_packed_projection},
                          Pattern{"Transpose", find_map_of_tokens},
                          Pattern{"Conv", find_copied_shortcut}};

}  // namespace

PatternFamily shape_patterns() { return list; }

}  // namespace headroom::recovery
