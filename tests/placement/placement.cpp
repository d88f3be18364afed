// The planner's front against every segmentation there is, each simulated as a whole.
#include "estimator/plan/checkpoint/placement.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "estimator/plan/step_trace.h"
#include "tests/placement/generated.h"

namespace headroom {
namespace {

struct Figures {
  std::int64_t peak = 0, work = 0;
  friend auto operator<=>(const Figures&, const Figures&) = default;
};

/// Most that lives after the setup, each block rounded to 512, without what no placement counts.
std::int64_t live_peak(const shadow::Trace& trace, Bytes rerun_workspace) {
  using Kind = shadow::TraceEvent::Kind;
  std::int64_t live = 0, peak = 0;
  Phase phase = Phase::setup;
  for (const auto& e : trace.events) {
    if (e.kind == Kind::phase) phase = e.phase;
    if (e.kind != Kind::alloc && e.kind != Kind::free) continue;
    if (is_rerun_workspace(trace, e.index, rerun_workspace)) continue;
    const std::int64_t bytes = trace.blocks[static_cast<std::size_t>(e.index)].bytes.rounded_up(512).count();
    live += e.kind == Kind::alloc ? bytes : -bytes;
    if (phase != Phase::setup) peak = std::max(peak, live);
  }
  return peak;
}

struct Question {
  ShapedPrograms programs;
  Scenario scenario;

  explicit Question(Program program, Scenario s = {}) : scenario(std::move(s)) {
    programs.programs.push_back(std::make_shared<const Program>(std::move(program)));
    programs.order.push_back(programs.programs[0].get());
    scenario.steps = 2;
  }
  std::int64_t simulated(const std::vector<SegmentRange>& segments) const {
    Scenario s = scenario;
    s.checkpoint = CheckpointKind::plan;
    for (const SegmentRange& r : segments)
      s.checkpoint_plan.segments.push_back({.begin = r.begin, .end = r.end, .save = r.save});
    return live_peak(step_trace(programs, s).trace, device_facts(s, nullptr).cublaslt_workspace);
  }
};

/// Calls `found` with every set of segments of at least `shortest` calls that do not overlap, each with every list of
/// what it keeps.
template <class Found>
void each_segmentation(const StepProfile& p, std::size_t from, std::size_t shortest,
                       std::vector<SegmentRange>& segments, Found&& found) {
  if (from == p.calls) return found(segments);
  each_segmentation(p, from + 1, shortest, segments, found);
  const auto with = [&](SegmentRange r) {
    segments.push_back(std::move(r));
    each_segmentation(p, segments.back().end, shortest, segments, found);
    segments.pop_back();
  };
  for (std::size_t end = from + shortest; end <= p.calls; ++end) {
    if (can_be_segment(p, from, end)) with({.begin = from, .end = end});
    for (std::size_t k = 0; k < p.keeps.size(); ++k)
      if (can_be_segment(p, from, end, k)) with({.begin = from, .end = end, .save = p.keeps[k]});
  }
}

std::vector<Figures> best(std::vector<Figures> all) {
  std::sort(all.begin(), all.end(),
            [](const Figures& a, const Figures& b) { return a.work != b.work ? a.work < b.work : a.peak < b.peak; });
  std::vector<Figures> front;
  for (const Figures& f : all)
    if (front.empty() || f.peak < front.back().peak) front.push_back(f);
  return front;
}

std::size_t selective_planned = 0;  ///< placements of fronts, with a segment that keeps results

/// How many segmentations were compared.
std::size_t check(const Question& q, std::vector<std::vector<std::string>> keeps = {}, std::size_t shortest = 1) {
  const StepProfile profile = step_profile(q.programs, q.scenario, std::move(keeps));
  const auto long_enough = [&](std::size_t begin, std::size_t end) { return end - begin >= shortest; };
  const PlacementFront front = place_checkpoints(profile, long_enough, long_enough);
  std::vector<Figures> all;
  std::vector<SegmentRange> segments;
  each_segmentation(profile, 0, shortest, segments, [&](const std::vector<SegmentRange>& s) {
    all.push_back({q.simulated(s), recomputed_work(profile, s)});
  });
  const bool autocast = q.scenario.autocast_dtype() != DType::undefined;
  CHECK(front.exact != autocast);  // no program here has two calls that share a cast
  std::vector<Figures> planned;
  for (const Placement& p : front.placements) {
    planned.push_back({p.peak, p.work});
    CHECK(q.simulated(p.segments) == p.peak);
    selective_planned += std::ranges::any_of(p.segments, [](const SegmentRange& r) { return !r.save.empty(); });
  }
  const bool equal = best(all) == planned;
  CHECK(equal);
  if (!equal) {
    MESSAGE(describe(*q.programs.order[0]));
    for (const Figures& f : best(all)) MESSAGE("every segmentation: " << f.peak << " " << f.work);
    for (const Figures& f : planned) MESSAGE("planned: " << f.peak << " " << f.work);
  }
  return all.size();
}

}  // namespace

#ifdef __SANITIZE_ADDRESS__
constexpr std::uint32_t graphs = 30, selective_graphs = 30, variants = 10;  // ten times as slow
#else
constexpr std::uint32_t graphs = 300, selective_graphs = 300, variants = 60;
#endif

TEST_CASE("the front is that of every segmentation simulated: chains, skips, diamonds") {
  std::size_t compared = 0;
  for (std::uint32_t seed = 0; seed < graphs; ++seed) {
    CAPTURE(seed);
    compared += check(Question(generated_program(seed, 3 + static_cast<int>(seed % 5), seed % 2 == 0 ? 1 : 64)));
  }
  MESSAGE(compared << " segmentations simulated");
}

TEST_CASE(
    "the same with selective segments, where short ones cannot do as well: products kept, joins and activations") {
  std::size_t compared = 0;
  for (std::uint32_t seed = 0; seed < selective_graphs; ++seed) {
    CAPTURE(seed);
    compared += check(Question(generated_program(seed, 4 + static_cast<int>(seed % 5), 64)),
                      {{"aten::addmm"}, {"aten::mul.Tensor", "aten::cat", "aten::gelu", "aten::native_dropout"}}, 3);
  }
  MESSAGE(compared << " segmentations simulated");
  CHECK(selective_planned > selective_graphs / 3);
}

TEST_CASE(
    "a rerun stops at its last save: before the kernel of what saves its inputs, after that of what saves its result") {
  std::size_t before = 0, after = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const Question q(generated_program(seed, 7));
    const StepProfile profile = step_profile(q.programs, q.scenario);
    const Program& program = *q.programs.order[0];
    for (std::size_t c = 0; c < program.calls.size(); ++c) {
      const std::string_view op = program.name_of(program.calls[c].op);
      CAPTURE(op);
      const StepProfile::Call& call = profile.call[c];
      if (call.node == profile.call[c + 1].node) continue;  // nothing before it needs a gradient: it saves nothing
      const bool inputs = op == "aten::linear" || op == "aten::gelu" || op == "aten::mul.Tensor";
      const bool results = op == "aten::relu" || op == "aten::sigmoid" || op == "aten::dropout";
      if (inputs || results) CHECK(call.work > 0);
      if (inputs) CHECK(call.work_as_last == 0);
      if (results) CHECK(call.work_as_last == call.work);
      before += inputs;
      after += results;
    }
  }
  CHECK(before > 20);
  CHECK(after > 20);
}

TEST_CASE("the same with autocast, accumulation, frozen parts, other optimizers and losses") {
  for (std::uint32_t seed = 1000; seed < 1000 + variants; ++seed) {
    CAPTURE(seed);
    Scenario s;
    s.precision = seed % 2 ? Precision::amp_bf16 : Precision::bf16;
    s.accumulate = 1 + seed % 3;
    s.optimizer = seed % 3 ? OptimizerKind::sgd : OptimizerKind::adamw;
    s.loss = seed % 5 == 0 ? LossKind::mse : LossKind::cross_entropy;
    if (seed % 4 == 0) s.freeze = {"layers.0.*"};
    if (seed % 7 == 0) s.outputs = OutputsKept::drop;
    check(Question(generated_program(seed, 6), s));
  }
}

}  // namespace headroom
