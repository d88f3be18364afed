#include "estimator/plan/checkpoint/planner.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

constexpr std::size_t shown_placements = 10;  ///< of the front, all simulated
constexpr int most_tries = 12;                ///< for a budget

/// Calls of each module, where they are one stretch.
class ModuleRanges {
 public:
  explicit ModuleRanges(const Program& p) : program_(p) {
    for (std::size_t c = 0; c < p.calls.size(); ++c)
      for (std::string_view path = p.module_path(p.calls[c].module); !path.empty(); path = parent(path)) {
        const auto [it, fresh] = ranges_.try_emplace(std::string(path), Range{c, c + 1, 1});
        if (fresh) continue;
        if (it->second.end < c) ++it->second.calls;
        it->second.end = c + 1;
      }
  }

  /// The modules that [begin, end) is exactly, outermost ones; empty when it is not.
  std::vector<std::string> of(std::size_t begin, std::size_t end) const {
    std::vector<std::string> out;
    while (begin < end) {
      std::string_view found;
      for (std::string_view path = program_.module_path(program_.calls[begin].module); !path.empty();
           path = parent(path)) {
        const Range& r = ranges_.find(path)->second;
        if (r.calls == 1 && r.begin == begin && r.end <= end) found = path;
      }
      if (found.empty()) return {};
      out.emplace_back(found);
      begin = ranges_.find(found)->second.end;
    }
    return out;
  }

  static std::string_view parent(std::string_view path) {
    const auto dot = path.rfind('.');
    return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
  }

 private:
  struct Range {
    std::size_t begin = 0, end = 0, calls = 0;
  };
  const Program& program_;
  std::map<std::string, Range, std::less<>> ranges_;
};

}  // namespace

bool one_list(const std::vector<std::string>& modules) {
  const auto parent = [](const std::string& path) { return path.substr(0, path.rfind('.') + 1); };
  return std::all_of(modules.begin(), modules.end(), [&](const auto& m) {
    return !parent(m).empty() && parent(m) == parent(modules[0]) && parse_int(m.substr(parent(m).size())).has_value();
  });
}

namespace {

class Planner {
 public:
  Planner(Estimator& estimator, const Scenario& scenario, const CheckpointQuestion& question)
      : estimator_(estimator), scenario_(scenario), question_(question) {}

  CheckpointAnswer answer() {
    if (!scenario_.training())
      throw usage_error("headroom checkpoint is about training", "", "leave --task infer away");
    if (!scenario_.sequences.empty())
      throw usage_error("headroom checkpoint plans for one length", "", "--seq with the longest of them");
    scenario_.checkpoint = CheckpointKind::none;
    scenario_.checkpoint_plan = {};
    Stages stages;
    out_.base = estimator_.estimate(scenario_, &stages);
    program_ = stages.programs.at(0).get();
    ShapedPrograms programs{stages.graphs, stages.programs, {program_}};
    const ModuleRanges modules(*program_);
    modules_ = &modules;
    profile_ = step_profile(programs, scenario_);
    const PlacementFront front = place_checkpoints(
        profile_, question_.any_cut ? SegmentFilter() : [&](std::size_t begin, std::size_t end) {
          const auto of = modules.of(begin, end);
          return of.size() == 1 ||
                 (of.size() > 1 && one_list(of) && named({.begin = begin, .end = end}).outputs.size() == 1);
        });
    out_.calls = profile_.calls;
    out_.forward_flops = profile_.cost.flops;
    out_.forward_bytes = profile_.cost.bytes;
    out_.exact = front.exact;
    out_.cuts = front.cuts;
    out_.placements = front.placements.size();
    out_.asked = scenario_.device.total_bytes.count() > 0 || question_.most_recomputed.has_value();
    baselines();
    show(front.placements);
    choose(front.placements);
    if (out_.chosen) say_state();
    return std::move(out_);
  }

 private:
  SimulatedPlacement simulated(std::string name, const std::vector<SegmentRange>& segments) {
    Scenario s = scenario_;
    if (!segments.empty()) s.checkpoint = CheckpointKind::plan;
    s.checkpoint_plan.source = name;
    for (const SegmentRange& r : segments) s.checkpoint_plan.segments.push_back({.begin = r.begin, .end = r.end});
    const Estimate e = estimator_.estimate(s);
    SimulatedPlacement p{.name = std::move(name)};
    for (const SegmentRange& r : segments) p.segments.push_back(named(r));
    p.allocated = e.peak_allocated;
    p.reserved = e.peak_reserved;
    p.device = e.peak_device;
    p.work = recomputed_work(profile_, segments);
    p.recomputed = static_cast<double>(p.work) / static_cast<double>(total_work());
    p.fits = e.fits;
    p.spare = e.spare;
    return p;
  }

  std::int64_t total_work() const { return std::max<std::int64_t>(profile_.forward_work + profile_.backward_work, 1); }

  NamedSegment named(const SegmentRange& r) const {
    NamedSegment out{.range = r, .modules = modules_->of(r.begin, r.end)};
    std::string_view common = program_->module_path(program_->calls[r.begin].module);
    std::vector<char> made(program_->slot_count()), read(program_->slot_count());
    for (const Parameter& p : program_->parameters) read[p.slot.at()] = 1;
    const auto name = [&](SlotId s) { return program_->slot_names[s.at()]; };
    for (std::size_t c = r.begin; c < r.end; ++c) {
      const std::string_view path = program_->module_path(program_->calls[c].module);
      while (!common.empty() &&
             !(path.starts_with(common) && (path.size() == common.size() || path[common.size()] == '.')))
        common = ModuleRanges::parent(common);
      for_each_read(program_->calls[c], [&](SlotId s) {
        if (made[s.at()] || std::exchange(read[s.at()], 1)) return;
        out.inputs.push_back(name(s));
      });
      for (const SlotId s : program_->calls[c].outputs)
        if (s.valid()) made[s.at()] = 1;
    }
    std::vector<char> wanted(program_->slot_count());
    for (const ProgramOutput& o : program_->outputs) wanted[o.slot.at()] = 1;
    for (std::size_t c = r.end; c < program_->calls.size(); ++c)
      for_each_read(program_->calls[c], [&](SlotId s) { wanted[s.at()] = 1; });
    for (std::size_t c = r.begin; c < r.end; ++c)
      for (const SlotId s : program_->calls[c].outputs)
        if (s.valid() && wanted[s.at()]) out.outputs.push_back(name(s));
    out.in = common;
    out.first = program_->calls[r.begin].site;
    out.last = program_->calls[r.end - 1].site;
    return out;
  }

  void baselines() {
    out_.baselines.push_back(simulated("none", {}));
    Scenario s = scenario_;
    s.checkpoint = CheckpointKind::blocks;
    if (block_modules(*program_).empty()) return;
    const std::vector<SegmentRange> blocks = checkpointed_ranges(*program_, s);
    out_.baselines.push_back(simulated("every block", blocks));
    // Chen et al. 2016: about as many segments as each has blocks.
    const auto each = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(blocks.size()))));
    std::vector<SegmentRange> segments;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      // Only modules of one list can be wrapped as one.
      if (i % each == 0 || blocks[i].begin != blocks[i - 1].end ||
          !one_list(modules_->of(segments.back().begin, blocks[i].end)))
        segments.push_back({.begin = blocks[i].begin, .end = blocks[i].end});
      else
        segments.back().end = blocks[i].end;
    }
    out_.baselines.push_back(simulated("square root", segments));
  }

  /// Some of the front, evenly over the peaks.
  void show(const std::vector<Placement>& all) {
    const std::int64_t low = all.back().peak, high = all.front().peak;
    std::size_t last = all.size();
    for (std::size_t k = 0; k < shown_placements; ++k) {
      const std::int64_t wanted =
          high - (high - low) * static_cast<std::int64_t>(k) / static_cast<std::int64_t>(shown_placements - 1);
      const auto at = static_cast<std::size_t>(
          std::find_if(all.begin(), all.end(), [&](const Placement& p) { return p.peak <= wanted; }) - all.begin());
      if (at == last || at == all.size()) continue;
      last = at;
      SimulatedPlacement p = simulated("planned", all[at].segments);
      // What the allocator made of it may be no better than what costs less.
      if (out_.front.empty() || p.allocated < out_.front.back().allocated) out_.front.push_back(std::move(p));
    }
  }

  void choose(const std::vector<Placement>& all) {
    std::vector<SimulatedPlacement> tried;
    if (question_.most_recomputed) {
      const double most = *question_.most_recomputed * static_cast<double>(total_work());
      std::size_t at = 0;
      while (at + 1 < all.size() && static_cast<double>(all[at + 1].work) <= most) ++at;
      // The allocator's own peak decides between neighbours.
      for (std::size_t k = at + 1; k-- > 0 && tried.size() < 3;) tried.push_back(simulated("planned", all[k].segments));
      for (const SimulatedPlacement& b : out_.baselines)
        if (static_cast<double>(b.work) <= most) tried.push_back(b);
      for (const SimulatedPlacement& p : tried)
        if (p.fits.value_or(true) && (!out_.chosen || p.allocated < out_.chosen->allocated)) out_.chosen = p;
      return;
    }
    if (!out_.asked) return;
    const Bytes total = scenario_.device.total_bytes;
    // Context, fragmentation and margin as without checkpoints, to begin with.
    const SimulatedPlacement& none = out_.baselines.front();
    std::int64_t budget = total.count() - (none.device - none.allocated).count() - out_.base.margin_device.count();
    for (int k = 0; k < most_tries; ++k) {
      const auto at = std::find_if(all.begin(), all.end(), [&](const Placement& p) { return p.peak <= budget; });
      const Placement& p = at == all.end() ? all.back() : *at;
      tried.push_back(simulated("planned", p.segments));
      if (*tried.back().fits || at == all.end() || at + 1 == all.end()) break;
      budget = std::min(p.peak - 1, budget + tried.back().spare.count());
    }
    for (const auto* list : {&tried, &out_.front, &out_.baselines})
      for (const SimulatedPlacement& p : *list)
        if (*p.fits && (!out_.chosen || p.work < out_.chosen->work)) out_.chosen = p;
  }

  void say_state() {
    for (const NamedSegment& s : out_.chosen->segments)
      for (std::size_t c = s.range.begin; c < s.range.end; ++c) {
        const std::string& op = program_->name_of(program_->calls[c].op);
        out_.dropout = out_.dropout || op.find("dropout") != std::string::npos ||
                       op.find("scaled_dot_product") != std::string::npos;
        out_.batch_norm = out_.batch_norm || op.starts_with("aten::batch_norm");
      }
  }

  Estimator& estimator_;
  Scenario scenario_;
  const CheckpointQuestion& question_;
  const Program* program_ = nullptr;
  const ModuleRanges* modules_ = nullptr;
  StepProfile profile_;
  CheckpointAnswer out_;
};

}  // namespace

CheckpointAnswer plan_checkpoints(Estimator& estimator, const Scenario& scenario, const CheckpointQuestion& question) {
  return Planner(estimator, scenario, question).answer();
}

}  // namespace headroom
