#include "estimator/plan/resize.h"

namespace headroom {
namespace {

bool varies(const BoundDim& d, DimMeaning meaning) { return d.meaning == meaning && d.source != "fixed by the file"; }

}  // namespace

std::optional<std::int64_t> size_of(const ShapedGraph& graph, DimMeaning meaning) {
  for (const BoundDim& d : graph.dims)
    if (varies(d, meaning)) return d.value;
  return std::nullopt;
}

Scenario resized(Scenario s, const ShapedGraph& graph, DimMeaning meaning, std::int64_t size) {
  bool named = false;
  for (const BoundDim& d : graph.dims) {
    const auto given = s.dims.find(d.name);
    if (given == s.dims.end() || !varies(d, meaning)) continue;
    given->second = size;
    named = true;
  }
  for (const ShapedInput& i : graph.inputs) {
    const auto given = s.shapes.find(i.name);
    const int axis = meaning == DimMeaning::batch ? i.batch_axis : i.sequence_axis;
    if (given == s.shapes.end() || axis < 0) continue;
    given->second[static_cast<std::size_t>(axis)] = size;
    named = true;
  }
  std::optional<std::int64_t>& flag = meaning == DimMeaning::batch ? s.batch : s.sequence;
  if (flag || !named) flag = size;
  return s;
}

}  // namespace headroom
