#include "estimator/recover/modules/packed_sequence.h"

#include <algorithm>
#include <unordered_set>

namespace headroom::recovery {

namespace {

/// The position ids that embeddings or a rotary embedding read: the first Range of the mask's cone, unsqueezed.
ValueId position_ids(const GraphView& g, const std::vector<NodeIndex>& cone) {
  for (const NodeIndex n : cone) {
    if (!g.is(n, "Range")) continue;
    ValueId v = g.output(n);
    for (int steps = 0; steps < 3; ++steps)
      for (const NodeIndex reader : g.readers(v)) {
        if (g.is(reader, "Unsqueeze") && g.dims(g.output(reader)).size() == 2 && g.dims(g.output(reader))[0] == 1)
          return g.output(reader);
        if (g.is(reader, "Add") && g.dims(g.output(reader)).size() == 1) v = g.output(reader);
      }
  }
  return {};
}

void emit_test(Recovery& r, ValueId positions, std::int64_t batch, std::int64_t length) {
  const auto call = [&](std::string_view op, Args args, std::string name) {
    const SlotId result = r.call(op, std::move(args), std::move(name));
    r.last_is_temporary();
    return result;
  };
  SlotId ids;
  if (positions.valid() && r.has_slot(positions)) {
    ids = r.tensor(positions);
  } else {
    const SlotId range = r.call("aten::arange", {length, DType::i64}, "position_ids.range");
    ids = r.call("aten::unsqueeze", {range, std::int64_t{0}}, "position_ids");
  }
  const SlotId all = call("aten::expand", {ids, Dims{batch, -1}}, "packed.position_ids");
  const SlotId head =
      call("aten::slice.Tensor", {all, std::int64_t{1}, std::int64_t{0}, std::int64_t{1}}, "packed.head");
  const SlotId before = call("aten::sub.Tensor", {head, std::int64_t{1}}, "packed.before");
  r.last_is_local();
  const SlotId steps = call("aten::diff", {all, std::int64_t{1}, std::int64_t{-1}, before}, "packed.steps");
  r.last_is_local();
  const SlotId breaks = call("aten::ne.Scalar", {steps, std::int64_t{1}}, "packed.breaks");
  const SlotId count = call("aten::cumsum", {breaks, std::int64_t{-1}}, "packed.count");
  r.last_is_local();
  const SlotId last = call("aten::select.int", {count, std::int64_t{1}, std::int64_t{-1}}, "packed.last");
  const SlotId none = call("aten::eq.Scalar", {last, std::int64_t{0}}, "packed.none");
  call("aten::all", {none}, "packed.all");
  r.keep_last();
}

}  // namespace

bool is_mask_input(const ShapedInput& input) {
  return input.name.find("mask") != std::string_view::npos || input.dtype == DType::b8;
}

void plan_packed_sequence_test(Recovery& r, ValueId mask) {
  if (r.packed_test_planned) return;
  const GraphView& g = r.graph;
  // The cone of the mask, without what the token stream shares with it.
  std::vector<NodeIndex> cone;
  std::unordered_set<NodeIndex> seen;
  std::vector<ValueId> work{mask};
  bool positions_compared = false;
  while (!work.empty()) {
    const NodeIndex n = g.producer(work.back());
    work.pop_back();
    if (n == no_node || g.is(n, "Shape") || !seen.insert(n).second) continue;
    cone.push_back(n);
    positions_compared = positions_compared || g.is(n, "LessOrEqual");
    for (const ValueId i : g.inputs(n)) work.push_back(i);
  }
  // A triangle (Trilu) is an older model's own mask, not transformers' masking utilities.
  if (!positions_compared || cone.empty()) return;
  const Dims& d = g.dims(mask);
  const ShapedInput* tokens = nullptr;
  for (const ShapedInput& i : g.shaped().inputs)
    if (!tokens && is_integer(i.dtype) && i.dims.size() == 2 && !is_mask_input(i)) tokens = &i;
  const std::int64_t batch = tokens ? tokens->dims[0] : d.empty() ? 1 : d[0];
  const std::int64_t length = d.size() >= 2 ? d[d.size() - 2] : 1;
  if (!tokens || tokens->dims[1] != length) return;

  std::sort(cone.begin(), cone.end());
  const ValueId positions = position_ids(g, cone);
  NodeIndex at = cone.front();
  const bool has_text = r.origins.has_text();
  for (const NodeIndex n : cone) {
    const bool of_mask = has_text ? r.origins.called_from(n, "create_causal_mask(") : g.is(n, "LessOrEqual");
    if (of_mask && !(positions.valid() && n <= g.producer(positions))) {
      at = n;
      break;
    }
  }
  if (positions.valid()) at = std::max(at, static_cast<NodeIndex>(g.producer(positions) + 1));
  r.packed_test_planned = true;
  r.at_node(at, [&r, positions, batch, length] { emit_test(r, positions, batch, length); });
}

}  // namespace headroom::recovery
