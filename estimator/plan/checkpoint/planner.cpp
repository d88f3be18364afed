#include "estimator/plan/checkpoint/planner.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <future>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/plan/checkpoint/module_ranges.h"
#include "estimator/plan/parallel.h"

namespace headroom {
namespace {

constexpr std::size_t spread_calls = 3'500;    ///< of all placements of the front that are simulated and shown
constexpr int most_tries = 12;                 ///< for a budget
constexpr std::size_t bounded_placements = 3;  ///< simulated for a bound
constexpr std::size_t many_calls = 500;        ///< beyond them one placement fewer: a simulation takes long

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
    const std::shared_ptr<const ShapedPrograms> programs = take_apart();
    note_slots();
    const ModuleRanges modules(*program_);
    modules_ = &modules;
    const std::vector<Rule> rules = rules_of();
    auto beside = std::async(std::launch::async, [&] {
      out_.base = estimator_.estimate(scenario_);
      simulated_[{}] = figures_of(out_.base);
      simulate(segments_of(rules));
    });
    const SegmentFilter any_cut,
        wrapped = [&](std::size_t begin, std::size_t end) { return modules.can_be_wrapped(begin, end); };
    const PlacementFront front =
        place_checkpoints(profile_, question_.any_cut ? any_cut : wrapped,
                          [&](std::size_t begin, std::size_t end) { return in_block(begin, end); });
    beside.get();
    out_.calls = profile_.calls;
    out_.forward_flops = profile_.cost.flops;
    out_.forward_bytes = profile_.cost.bytes;
    out_.exact = front.exact;
    out_.cuts = front.cuts;
    out_.placements = front.placements.size();
    out_.asked = scenario_.device.total_bytes.count() > 0 || question_.most_recomputed.has_value();
    const std::vector<const Placement*> bounded = bounded_of(front.placements);
    std::vector<const Placement*> shown = spread_of(front.placements);
    shown.insert(shown.end(), bounded.begin(), bounded.end());
    std::sort(shown.begin(), shown.end());
    shown.erase(std::unique(shown.begin(), shown.end()), shown.end());
    std::vector<std::vector<SegmentRange>> needed;
    for (const Placement* p : shown) needed.push_back(p->segments);
    simulate(needed);
    for (const Rule& r : rules) out_.baselines.push_back(placed(r.name, r.segments));
    for (const Placement* one : shown) {
      SimulatedPlacement p = placed("planned", one->segments);
      // What the allocator made of it may be no better than what costs less.
      if (out_.front.empty() || p.allocated < out_.front.back().allocated) out_.front.push_back(std::move(p));
    }
    choose(front.placements, bounded);
    if (out_.chosen) say_state();
    return std::move(out_);
  }

 private:
  /// What the allocator made of segments.
  struct Figures {
    Bytes allocated, reserved, device;
    std::optional<bool> fits;
    bool frees_cache = false;
    Bytes spare;
  };
  struct Rule {
    std::string name;
    std::vector<SegmentRange> segments;
  };
  using Key = std::vector<std::tuple<std::size_t, std::size_t, std::vector<std::string>>>;

  static Figures figures_of(const Estimate& e) {
    return {e.peak_allocated, e.peak_reserved, e.peak_device, e.fits, e.frees_cache, e.spare};
  }
  static Key key_of(const std::vector<SegmentRange>& segments) {
    Key key;
    for (const SegmentRange& r : segments) key.emplace_back(r.begin, r.end, r.save);
    return key;
  }

  /// The step's profile, of the programs that the estimate runs.
  std::shared_ptr<const ShapedPrograms> take_apart() {
    auto programs = estimator_.programs(scenario_);
    std::optional<StepTrace> whole;
    const auto profile = [&] {
      program_ = programs->programs.at(0).get();
      profile_ = step_profile({programs->graphs, programs->programs, {program_}}, scenario_, kept_operators(), &whole);
    };
    try {
      profile();
      if (whole) estimator_.know(scenario_, std::move(*whole));
    } catch (const Error&) {
      Stages stages;
      estimator_.estimate(scenario_, &stages);  // throws where no programs can run
      if (stages.programs.at(0) == programs->programs.at(0)) throw;
      programs = std::make_shared<const ShapedPrograms>(ShapedPrograms{stages.graphs, stages.programs, {}});
      profile();
    }
    return programs;
  }

  /// Runs those that were not run yet, side by side.
  void simulate(const std::vector<std::vector<SegmentRange>>& sets) {
    std::vector<std::pair<Key, Figures>> fresh;
    for (const auto& segments : sets) {
      Key key = key_of(segments);
      const bool asked = std::any_of(fresh.begin(), fresh.end(), [&](const auto& f) { return f.first == key; });
      if (!asked && !simulated_.contains(key)) fresh.emplace_back(std::move(key), Figures{});
    }
    std::vector<std::exception_ptr> errors(fresh.size());
    parallel_for(fresh.size(), 0, [&](std::size_t i) {
      Scenario s = scenario_;
      s.checkpoint = CheckpointKind::plan;
      s.checkpoint_plan.source = "planned";
      for (const auto& [begin, end, save] : fresh[i].first)
        s.checkpoint_plan.segments.push_back({.begin = begin, .end = end, .save = save});
      try {
        fresh[i].second = figures_of(estimator_.estimate(s));
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
    for (const auto& error : errors)
      if (error) std::rethrow_exception(error);
    simulated_.insert(fresh.begin(), fresh.end());
  }

  static std::vector<std::vector<SegmentRange>> segments_of(const std::vector<Rule>& rules) {
    std::vector<std::vector<SegmentRange>> out;
    for (const Rule& r : rules) out.push_back(r.segments);
    return out;
  }

  SimulatedPlacement placed(std::string name, const std::vector<SegmentRange>& segments) {
    simulate({segments});
    const Figures& f = simulated_.at(key_of(segments));
    SimulatedPlacement p{.name = std::move(name), .allocated = f.allocated, .reserved = f.reserved, .device = f.device};
    for (const SegmentRange& r : segments) p.segments.push_back(named(r));
    p.work = recomputed_work(profile_, segments);
    p.recomputed = static_cast<double>(p.work) / static_cast<double>(total_work());
    p.fits = f.fits;
    p.frees_cache = f.frees_cache;
    p.spare = f.spare;
    return p;
  }

  std::int64_t total_work() const {
    return std::max<std::int64_t>(profile_.cost.forward_work + profile_.cost.backward_work, 1);
  }

  void note_slots() {
    is_parameter_.resize(program_->slot_count());
    last_read_.resize(program_->slot_count());
    for (const Parameter& p : program_->parameters) is_parameter_[p.slot.at()] = 1;
    for (std::size_t c = 0; c < program_->calls.size(); ++c)
      for_each_read(program_->calls[c], [&](SlotId s) { last_read_[s.at()] = c; });
    for (const ProgramOutput& o : program_->outputs) last_read_[o.slot.at()] = program_->calls.size();
  }

  NamedSegment named(const SegmentRange& r) const {
    NamedSegment out{.range = r, .modules = modules_->of(r.begin, r.end)};
    std::string_view common = program_->module_path(program_->calls[r.begin].module);
    std::set<SlotId> made, read;
    const auto name = [&](SlotId s) { return program_->slot_names[s.at()]; };
    for (std::size_t c = r.begin; c < r.end; ++c) {
      const std::string_view path = program_->module_path(program_->calls[c].module);
      while (!common.empty() &&
             !(path.starts_with(common) && (path.size() == common.size() || path[common.size()] == '.')))
        common = ModuleRanges::parent(common);
      for_each_read(program_->calls[c], [&](SlotId s) {
        if (!is_parameter_[s.at()] && !made.contains(s) && read.insert(s).second) out.inputs.push_back(name(s));
      });
      for (const SlotId s : program_->calls[c].outputs)
        if (s.valid()) made.insert(s);
    }
    for (std::size_t c = r.begin; c < r.end; ++c)
      for (const SlotId s : program_->calls[c].outputs)
        if (s.valid() && last_read_[s.at()] >= r.end) out.outputs.push_back(name(s));
    out.in = common;
    out.first = program_->calls[r.begin].site;
    out.last = program_->calls[r.end - 1].site;
    return out;
  }

  /// A block, or with cuts any stretch of one.
  bool in_block(std::size_t begin, std::size_t end) const {
    const auto after = blocks_.upper_bound({begin, std::numeric_limits<std::size_t>::max()});
    if (after == blocks_.begin()) return false;
    const auto& [first, last] = *std::prev(after);
    return question_.any_cut ? end <= last : begin == first && end == last;
  }

  /// Some of what it makes is worth keeping.
  bool can_keep(const SegmentRange& r) const {
    const auto first = profile_.call.begin();
    return std::any_of(first + static_cast<std::ptrdiff_t>(r.begin), first + static_cast<std::ptrdiff_t>(r.end),
                       [](const StepProfile::Call& c) { return c.kept != 0; });
  }

  std::vector<Rule> rules_of() {
    std::vector<Rule> rules{{"none", {}}};
    Scenario s = scenario_;
    s.checkpoint = CheckpointKind::blocks;
    if (block_modules(*program_).empty()) return rules;
    const std::vector<SegmentRange> blocks = checkpointed_ranges(*program_, s);
    rules.push_back({"every block", blocks});
    for (const SegmentRange& r : blocks) blocks_.emplace(r.begin, r.end);
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
    rules.push_back({"square root", segments});
    std::vector<SegmentRange> selective = blocks;
    for (SegmentRange& r : selective) r.save = profile_.keeps.back();
    if (std::ranges::any_of(blocks, [&](const SegmentRange& r) { return can_keep(r); }))
      rules.push_back({"selective", selective});
    return rules;
  }

  /// Some of the front, evenly over the peaks.
  std::vector<const Placement*> spread_of(const std::vector<Placement>& all) const {
    std::vector<const Placement*> shown;
    const auto count = std::clamp<std::size_t>(spread_calls / std::max<std::size_t>(profile_.calls, 1), 3, 10);
    const std::int64_t low = all.back().peak, high = all.front().peak;
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t wanted =
          high - (high - low) * static_cast<std::int64_t>(k) / static_cast<std::int64_t>(count - 1);
      const auto at = std::find_if(all.begin(), all.end(), [&](const Placement& p) { return p.peak <= wanted; });
      if (at != all.end() && (shown.empty() || shown.back() != &*at)) shown.push_back(&*at);
    }
    return shown;
  }

  double most_work() const { return *question_.most_recomputed * static_cast<double>(total_work()); }

  /// The lowest peaks within the bound: between neighbours the allocator's own peak decides.
  std::vector<const Placement*> bounded_of(const std::vector<Placement>& all) const {
    std::vector<const Placement*> out;
    if (!question_.most_recomputed) return out;
    const std::size_t most = bounded_placements - (profile_.calls > many_calls ? 1 : 0);
    std::size_t at = 0;
    while (at + 1 < all.size() && static_cast<double>(all[at + 1].work) <= most_work()) ++at;
    for (std::size_t k = at + 1; k-- > 0 && out.size() < most;) out.push_back(&all[k]);
    return out;
  }

  void choose(const std::vector<Placement>& all, const std::vector<const Placement*>& bounded) {
    std::vector<SimulatedPlacement> tried;
    if (question_.most_recomputed) {
      for (const Placement* p : bounded) tried.push_back(placed("planned", p->segments));
      for (const auto* list : {&out_.front, &out_.baselines})
        for (const SimulatedPlacement& p : *list)
          if (static_cast<double>(p.work) <= most_work()) tried.push_back(p);
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
      tried.push_back(placed("planned", p.segments));
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
  std::vector<char> is_parameter_;                        ///< by slot
  std::vector<std::size_t> last_read_;                    ///< by slot: call; the end: an output
  std::set<std::pair<std::size_t, std::size_t>> blocks_;  ///< ranges of the repeated modules
  StepProfile profile_;
  std::map<Key, Figures> simulated_;
  CheckpointAnswer out_;
};

}  // namespace

CheckpointAnswer plan_checkpoints(Estimator& estimator, const Scenario& scenario, const CheckpointQuestion& question) {
  return Planner(estimator, scenario, question).answer();
}

}  // namespace headroom
