#include "estimator/recover/modules/full_mask.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "estimator/recover/attention.h"

namespace headroom::recovery {

namespace {

/// Positions and other numbers from zero on: what ranges give by addition.
bool is_range(const GraphView& g, ValueId v, int depth = 0) {
  constexpr int deepest = 8;
  const NodeIndex n = g.producer(v);
  if (depth > deepest || n == no_node) return false;
  if (g.is(n, "Range")) return g.number(g.input(n, 0)).value_or(-1) >= 0;
  constexpr auto kept = std::to_array<std::string_view>({"Unsqueeze", "Reshape", "Cast", "Expand", "Identity"});
  if (std::ranges::find(kept, g.op(n)) != kept.end()) return is_range(g, g.input(n, 0), depth + 1);
  return g.is(n, "Add") && is_range(g, g.input(n, 0), depth + 1) && g.number(g.input(n, 1)).value_or(-1) >= 0;
}

/// All that it is made of by `and` and by moving elements is true.
bool is_true(const GraphView& g, ValueId mask) {
  constexpr auto moved =
      std::to_array<std::string_view>({"Cast", "Expand", "Unsqueeze", "Squeeze", "Reshape", "Transpose", "Slice",
                                       "Gather", "GatherND", "Flatten", "Identity"});
  std::unordered_set<ValueId> seen;
  std::vector<ValueId> work{g.resolve(mask)};
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    if (!v.valid()) return false;
    if (!seen.insert(v).second) continue;
    if (const auto number = g.number(v)) {
      if (*number == 0) return false;
      continue;
    }
    const NodeIndex n = g.producer(v);
    if (n == no_node) return false;
    if (g.is(n, "And")) {
      work.insert(work.end(), {g.input(n, 0), g.input(n, 1)});
    } else if (g.is(n, "GreaterOrEqual")) {
      if (g.number(g.input(n, 1)) != 0.0 || !is_range(g, g.input(n, 0))) return false;
    } else if (g.is(n, "ConstantOfShape")) {
      const Attribute* value = g.node(n).attribute("value");
      if (!value || !value->tensor) return false;
      if (std::ranges::none_of(value->tensor->bytes, [](std::byte b) { return b != std::byte{0}; })) return false;
    } else if (std::ranges::find(moved, g.op(n)) != moved.end()) {
      work.push_back(g.input(n, 0));
    } else {
      return false;
    }
  }
  return true;
}

/// where(true, 0, torch.finfo(dtype).min).
bool hides_nothing(const GraphView& g, ValueId v) {
  const NodeIndex where = through_casts(g, v);
  constexpr double least_of_float16 = -65504;
  return g.is(where, "Where") && g.number(g.input(where, 1)) == 0.0 &&
         g.number(g.input(where, 2)).value_or(0) <= least_of_float16 && is_true(g, g.input(where, 0));
}

}  // namespace

void plan_full_masks(Recovery& r) {
  const GraphView& g = r.graph;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto softmax = static_cast<NodeIndex>(i);
    if (!g.is(softmax, "Softmax")) continue;
    const NodeIndex add = through_casts(g, g.input(softmax, 0));
    if (!g.is(add, "Add") || g.only_reader(g.output(add)) == no_node) continue;
    for (const std::size_t side : {std::size_t{1}, std::size_t{0}})
      if (hides_nothing(g, g.input(add, side))) {
        r.replace(g.output(add), g.input(add, 1 - side));
        break;
      }
  }
}

}  // namespace headroom::recovery
