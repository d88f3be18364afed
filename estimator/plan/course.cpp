#include "estimator/plan/course.h"

#include <algorithm>
#include <numeric>

namespace headroom {
namespace {

using shadow::TraceEvent;

/// Events [first, second) of a step.
std::pair<std::size_t, std::size_t> events_of(const shadow::Trace& t, int step) {
  std::size_t from = t.events.size(), to = t.events.size();
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    const TraceEvent& e = t.events[i];
    if (e.kind != TraceEvent::Kind::phase || e.phase == Phase::setup) continue;
    if (e.index == step && from == t.events.size()) from = i;
    if (e.index > step) {
      to = i;
      break;
    }
  }
  return {from, to};
}

}  // namespace

Bytes CoursePoint::sum() const { return std::accumulate(categories.begin(), categories.end(), Bytes()); }

Course course_of(const Stages& stages, std::size_t columns) {
  const shadow::Trace& trace = *stages.trace;
  Course out;
  out.step = stages.timeline.phases[stages.timeline.peak_phase].step;
  const auto [from, to] = events_of(trace, out.step);
  if (from >= to) return out;
  columns = std::min(columns, to - from);
  out.points.resize(columns);

  std::vector<Category> category(trace.blocks.size());
  CoursePoint now;
  Bytes highest;
  const auto held = [&](Category c) -> Bytes& { return now.categories[static_cast<std::size_t>(c)]; };
  for (std::size_t i = 0; i < to; ++i) {
    const TraceEvent& e = trace.events[i];
    const std::size_t column = i < from ? 0 : (i - from) * columns / (to - from);
    if (e.kind == TraceEvent::Kind::phase) {
      if (i >= from) out.phases.push_back({e.phase, column});
    } else if (e.of_block()) {
      const auto b = static_cast<std::size_t>(e.index);
      const Bytes bytes = trace.blocks[b].bytes;
      if (e.kind != TraceEvent::Kind::alloc) held(category[b]) -= bytes;
      if (e.kind != TraceEvent::Kind::free) held(category[b] = e.category) += bytes;
    }
    if (i < from) continue;
    const Bytes sum = now.sum();
    if (sum >= out.points[column].sum()) out.points[column] = now;
    if (sum > highest) {
      highest = sum;
      out.peak = column;
    }
  }
  return out;
}

}  // namespace headroom
