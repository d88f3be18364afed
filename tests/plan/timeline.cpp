// A timeline made while the steps were still being recorded is the one that the finished trace gives.
#include <doctest/doctest.h>

#include "estimator/allocate/allocator.h"
#include "estimator/plan/estimate.h"
#include "estimator/plan/timeline_beside.h"

namespace headroom {
namespace {

void check_same(const Timeline& a, const Timeline& b) {
  CHECK(a.allocated_peak == b.allocated_peak);
  CHECK(a.reserved_peak == b.reserved_peak);
  CHECK(a.peak_event == b.peak_event);
  CHECK(a.peak_phase == b.peak_phase);
  CHECK(a.segments.size() == b.segments.size());
  REQUIRE(a.phases.size() == b.phases.size());
  for (std::size_t i = 0; i < a.phases.size(); ++i) {
    CHECK(a.phases[i].phase == b.phases[i].phase);
    CHECK(a.phases[i].step == b.phases[i].step);
    CHECK(a.phases[i].allocated_peak == b.phases[i].allocated_peak);
    CHECK(a.phases[i].reserved_peak == b.phases[i].reserved_peak);
    CHECK(a.phases[i].allocated_end == b.phases[i].allocated_end);
  }
}

Stages stages_of(const char* file, const Scenario& scenario) {
  Stages stages;
  estimate(file, scenario, &stages);
  return stages;
}

TEST_CASE("estimate's timeline is run_timeline's") {
  for (const char* file : {HEADROOM_ZOO "/gpt2.onnx", HEADROOM_ZOO "/mlp.onnx"}) {
    CAPTURE(file);
    const Stages s = stages_of(file, {.batch = 2, .sequence = 64});
    check_same(s.timeline, run_timeline(*s.trace, *make_allocator({}, {})));
  }
}

TEST_CASE("handed over bit by bit") {
  const Stages s = stages_of(HEADROOM_ZOO "/gpt2.onnx", {.batch = 2, .sequence = 64});
  TimelineBeside beside({});
  shadow::Trace growing;
  growing.blocks = s.trace->blocks;
  for (const shadow::TraceEvent& e : s.trace->events) {
    growing.events.push_back(e);
    if (growing.events.size() % 700 == 0) beside.more(growing);
  }
  const auto served = beside.finish(*s.trace);
  REQUIRE(served);
  check_same(*served, s.timeline);
}

TEST_CASE("a refused request leaves no timeline") {
  shadow::Trace trace;
  trace.blocks.push_back({.bytes = Bytes(std::int64_t{1} << 62)});
  trace.events.push_back({.kind = shadow::TraceEvent::Kind::alloc, .index = 0});
  TimelineBeside beside({});
  CHECK_FALSE(beside.finish(trace));
}

TEST_CASE("a step that fails leaves its thread behind no more than itself") {
  const Stages s = stages_of(HEADROOM_ZOO "/gpt2.onnx", {.batch = 2, .sequence = 64});
  TimelineBeside beside({});
  beside.more(*s.trace);
}

}  // namespace
}  // namespace headroom
