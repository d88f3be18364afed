#include "estimator/plan/checkpoint/step_profile.h"

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/plan/checkpoint/step_watch.h"
#include "estimator/plan/step_trace.h"
#include "estimator/step/session.h"

namespace headroom {
namespace {

using shadow::TraceEvent;

/// The second step has the optimizer's state and the outputs of the first.
constexpr int profiled_steps = 2;
/// What the allocator rounds requests to (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize).
constexpr std::int64_t smallest_block = 512;

struct Run {
  StepTrace whole;
  shadow::StepLog log;
  StepWatch::Begin backward_begin;
  std::size_t backward_end = 0;
  std::vector<StepWatch::Begin> begins;
  std::vector<std::vector<std::int32_t>> reads, writes, makes;
  std::vector<CallCost> costs;
  CallCost of_loss;

  Bytes rerun_workspace;

  const shadow::Trace& trace() const { return whole.trace; }
  std::int64_t bytes(std::int32_t block) const {
    if (is_rerun_workspace(trace(), block, rerun_workspace)) return 0;
    return trace().blocks[static_cast<std::size_t>(block)].bytes.rounded_up(smallest_block).count();
  }
  std::int32_t first_block() const { return static_cast<std::int32_t>(begins.front().at.blocks); }
  std::int32_t made() const { return static_cast<std::int32_t>(backward_begin.at.blocks) - first_block(); }
};

Run run(const ShapedPrograms& programs, const Scenario& scenario, int steps) {
  Run r;
  const auto profile = profile_of(scenario);
  r.rerun_workspace = device_facts(scenario, profile.get()).cublaslt_workspace;
  Scenario s = scenario;
  s.steps = steps;
  std::optional<StepWatch> watch;
  r.whole = step_trace(programs, s, nullptr, {}, [&](shadow::Shadow& machine) -> Machine& {
    return watch.emplace(machine, scenario, *programs.order.front(), profiled_steps - 1, r.log);
  });
  r.backward_begin = watch->backward_begin;
  r.backward_end = watch->backward_end;
  r.begins = std::move(watch->begins);
  r.reads = std::move(watch->reads);
  r.writes = std::move(watch->writes);
  r.makes = std::move(watch->makes);
  r.costs = std::move(watch->costs);
  r.of_loss = watch->of_loss;
  return r;
}

/// A list of modules (ModuleList, Sequential): its children are numbers and it calls nothing itself. Code between its
/// children stands in the module around it, or can.
std::vector<std::vector<std::string>> frames_of_calls(const Program& program) {
  struct Seen {
    bool calls = false, only_numbers = true;
  };
  std::map<std::string, Seen, std::less<>> modules;
  for (const Call& c : program.calls) {
    std::string_view path = program.module_path(c.module);
    modules[std::string(path)].calls = true;
    while (!path.empty()) {
      const auto dot = path.rfind('.');
      const std::string_view parent = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
      const std::string_view name = dot == std::string_view::npos ? path : path.substr(dot + 1);
      Seen& s = modules[std::string(parent)];
      s.only_numbers = s.only_numbers && parse_int(name).has_value();
      path = parent;
    }
  }
  std::vector<std::vector<std::string>> of_module(program.modules.size() + 1);
  std::vector<std::vector<std::string>> out;
  for (const Call& c : program.calls) {
    auto& frames = of_module[c.module.valid() ? c.module.at() + 1 : 0];
    if (frames.empty()) {
      std::string_view path = program.module_path(c.module);
      while (!path.empty()) {
        const Seen& s = modules.find(path)->second;
        if (s.calls || !s.only_numbers) frames.emplace_back(path);
        const auto dot = path.rfind('.');
        path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
      }
      frames.emplace_back("");
      std::reverse(frames.begin(), frames.end());
    }
    out.push_back(frames);
  }
  return out;
}

class Taking {
 public:
  Taking(const Program& program, const Run& kept, const Run& single)
      : program_(program), kept_(kept), single_(single) {}

  StepProfile apart(std::vector<std::vector<std::string>> keeps) {
    p_.keeps = std::move(keeps);
    p_.calls = program_.calls.size();
    if (kept_.begins.size() <= p_.calls || single_.begins.size() <= p_.calls || kept_.made() != single_.made())
      throw Error(Exit::not_modelled, "checkpoint: this step cannot be taken apart", {},
                  "the model makes no call that backward runs through");
    p_.call.resize(p_.calls + 2);
    blocks();
    forward();
    saves();
    backward();
    kept_results();
    frames();
    others();
    for (std::size_t c = 0; c < p_.calls; ++c) {
      p_.call[c].work = kept_.costs[c].forward_work;
      p_.call[c].work_beside = kept_.costs[c].beside_work;
      // Inputs are saved before the kernel runs, results after it.
      const auto made_before = kept_.begins[c].at.blocks - static_cast<std::size_t>(kept_.first_block());
      if (p_.call[c].made_at_last_save > made_before || !kept_.writes[c].empty())
        p_.call[c].work_as_last = p_.call[c].work;
      p_.cost += kept_.costs[c];
    }
    p_.cost += kept_.of_loss;
    return std::move(p_);
  }

 private:
  std::size_t call_at(const Run& r, std::size_t event) const {
    const auto end = r.begins.begin() + static_cast<std::ptrdiff_t>(p_.calls) + 1;
    const auto after =
        std::upper_bound(r.begins.begin(), end, event, [](std::size_t e, const auto& b) { return e < b.at.events; });
    return static_cast<std::size_t>(after - r.begins.begin()) - 1;
  }

  void blocks() {
    const std::int32_t first = kept_.first_block();
    p_.blocks.resize(static_cast<std::size_t>(kept_.made()));
    for (std::size_t b = 0; b < p_.blocks.size(); ++b) {
      p_.blocks[b].bytes = kept_.bytes(first + static_cast<std::int32_t>(b));
      if (p_.blocks[b].bytes != single_.bytes(single_.first_block() + static_cast<std::int32_t>(b)))
        throw Error(Exit::not_modelled, "checkpoint: this step cannot be taken apart");
    }
    const auto of = [&](std::int32_t traced) { return traced - first; };
    for (std::size_t c = 0; c < p_.calls; ++c) {
      auto& reads = p_.call[c].reads;
      for (const std::int32_t b : kept_.reads[c])
        if (of(b) >= 0 && std::find(reads.begin(), reads.end(), of(b)) == reads.end()) reads.push_back(of(b));
      for (const std::int32_t b : kept_.writes[c])
        if (of(b) >= 0) p_.blocks[static_cast<std::size_t>(of(b))].written = c + 1;
      for (const std::int32_t b : kept_.makes[c])
        if (of(b) >= 0) p_.blocks[static_cast<std::size_t>(of(b))].variable = true;
    }
  }

  /// The forward pass of the run that is one segment: what lives there, variables keep.
  void forward() {
    const std::int32_t first = single_.first_block();
    std::int64_t live = 0;
    std::size_t call = 0;
    std::vector<std::uint8_t> alive(p_.blocks.size());
    for (std::size_t i = 0; i < single_.backward_begin.at.events; ++i) {
      while (call <= p_.calls && i >= single_.begins[call].at.events) {
        if (call == 0) p_.live_at_start = live;
        p_.call[call++].event = static_cast<std::uint32_t>(p_.events.size());
      }
      const TraceEvent& e = single_.trace().events[i];
      if (e.kind != TraceEvent::Kind::alloc && e.kind != TraceEvent::Kind::free) continue;
      const bool made = e.kind == TraceEvent::Kind::alloc;
      live += made ? single_.bytes(e.index) : -single_.bytes(e.index);
      if (call == 0) continue;
      const std::int32_t block = e.index >= first ? e.index - first : -1;
      if (block >= 0) {
        alive[static_cast<std::size_t>(block)] = made;
        if (made) p_.blocks[static_cast<std::size_t>(block)].made = call - 1;
      }
      p_.events.push_back({block, made, live});
    }
    for (; call < p_.call.size(); ++call) p_.call[call].event = static_cast<std::uint32_t>(p_.events.size());
    // What backward frees was saved, by the loss; the rest belongs to variables.
    for (std::size_t b = 0; b < alive.size(); ++b) p_.blocks[b].outlives = alive[b] != 0;
    for (std::size_t i = single_.backward_begin.at.events; i < single_.backward_end; ++i) {
      const TraceEvent& e = single_.trace().events[i];
      const std::int32_t block = e.index - first;
      if (e.kind == TraceEvent::Kind::free && block >= 0 && static_cast<std::size_t>(block) < alive.size())
        p_.blocks[static_cast<std::size_t>(block)].outlives = false;
    }
  }

  void saves() {
    const std::int32_t first = kept_.first_block();
    std::uint64_t node = kept_.begins.front().node;
    std::size_t call = 0;
    const auto open = [&](std::uint64_t upto) {
      for (; node < upto; ++node) {
        while (call <= p_.calls && node >= kept_.begins[call].node)
          p_.call[call++].node = static_cast<std::uint32_t>(p_.nodes.size());
        const auto at = static_cast<std::uint32_t>(p_.saves.size());
        p_.nodes.push_back({.saves_begin = at, .saves_end = at});
      }
    };
    first_node_ = node + 1;
    for (const auto& s : kept_.log.saves) {
      if (s.node < first_node_) continue;
      open(s.node);
      // The node's own number may lie before ones made since; it is the last in practice.
      if (p_.nodes.size() != s.node - first_node_ + 1) continue;
      p_.saves.push_back(s.block >= first ? s.block - first : -1);
      p_.nodes.back().saves_end = static_cast<std::uint32_t>(p_.saves.size());
      p_.call[call - 1].made_at_last_save = s.blocks - static_cast<std::size_t>(first);
    }
    open(kept_.backward_begin.node);
    for (; call < p_.call.size(); ++call) p_.call[call].node = static_cast<std::uint32_t>(p_.nodes.size());
  }

  /// Backward of the run that keeps everything, without what is kept.
  void backward() {
    const std::int32_t first = kept_.first_block();
    std::int64_t live = 0;
    std::size_t i = 0;
    const auto apply = [&](const TraceEvent& e) {
      if (e.kind != TraceEvent::Kind::alloc && e.kind != TraceEvent::Kind::free) return;
      const std::int32_t block = e.index - first;
      const bool saved = block >= 0 && static_cast<std::size_t>(block) < p_.blocks.size() &&
                         !p_.blocks[static_cast<std::size_t>(block)].outlives;
      if (saved) return;
      live += e.kind == TraceEvent::Kind::alloc ? kept_.bytes(e.index) : -kept_.bytes(e.index);
    };
    const auto most = [&](std::size_t end) {
      std::int64_t peak = live;
      for (; i < end; ++i) {
        apply(kept_.trace().events[i]);
        peak = std::max(peak, live);
      }
      return peak;
    };
    most(kept_.log.nodes.empty() ? kept_.backward_end : kept_.log.nodes.front().begin);
    for (std::size_t n = 0; n < kept_.log.nodes.size(); ++n) {
      const auto& r = kept_.log.nodes[n];
      if (r.node < first_node_ || r.node - first_node_ >= p_.nodes.size()) continue;
      StepProfile::Node& node = p_.nodes[r.node - first_node_];
      node.runs = true;
      node.begin = live;
      node.applying = most(r.applied);
      node.leaving = most(r.released);
      node.after = most(n + 1 < kept_.log.nodes.size() ? kept_.log.nodes[n + 1].begin : kept_.backward_end);
    }
  }

  void kept_results() {
    const std::int32_t first = kept_.first_block();
    std::unordered_map<std::int32_t, std::uint8_t> kept;  // by operator
    for (const auto& r : kept_.log.results) {
      const auto [op, fresh] = kept.try_emplace(r.op);
      if (fresh && r.op >= 0)
        for (std::size_t k = 0; k < p_.keeps.size(); ++k)
          if (std::ranges::find(p_.keeps[k], kept_.trace().texts[static_cast<std::size_t>(r.op)]) != p_.keeps[k].end())
            op->second |= static_cast<std::uint8_t>(1U << k);
      const std::int32_t b = r.block - first;
      if (op->second == 0 || b < 0 || static_cast<std::size_t>(b) >= p_.blocks.size()) continue;
      StepProfile::Block& block = p_.blocks[static_cast<std::size_t>(b)];
      block.kept |= op->second;
      p_.call[block.made].kept |= op->second;
    }
  }

  void frames() {
    const auto frames = frames_of_calls(program_);
    for (std::size_t c = 0; c < p_.calls; ++c) {
      p_.call[c].depth = frames[c].size();
      if (c == 0) continue;
      const auto end = std::mismatch(frames[c].begin(), frames[c].end(), frames[c - 1].begin(), frames[c - 1].end());
      p_.call[c].level = static_cast<std::size_t>(end.first - frames[c].begin());
    }
    p_.call[0].level = p_.call[p_.calls].level = 1;
  }

  void others() {
    std::int64_t live = 0;
    Phase phase = Phase::setup;
    for (const TraceEvent& e : kept_.trace().events) {
      if (e.kind == TraceEvent::Kind::phase) phase = e.phase;
      if (e.kind == TraceEvent::Kind::alloc) live += kept_.bytes(e.index);
      if (e.kind == TraceEvent::Kind::free) live -= kept_.bytes(e.index);
      if (phase == Phase::optimizer || phase == Phase::zero_grad) p_.other_peak = std::max(p_.other_peak, live);
    }
  }

  const Program& program_;
  const Run& kept_;
  const Run& single_;
  StepProfile p_;
  std::uint64_t first_node_ = 0;
};

}  // namespace

bool is_rerun_workspace(const shadow::Trace& trace, std::int32_t block, Bytes workspace) {
  const shadow::TraceBlock& b = trace.blocks[static_cast<std::size_t>(block)];
  return b.category == Category::workspaces && b.phase == Phase::backward && b.bytes == workspace && b.op >= 0 &&
         trace.texts[static_cast<std::size_t>(b.op)] == "aten::addmm";
}

StepProfile step_profile(const ShapedPrograms& programs, const Scenario& scenario,
                         std::vector<std::vector<std::string>> keeps, std::optional<StepTrace>* whole) {
  const Program& program = *programs.order.front();
  Scenario kept = scenario, single = scenario;
  kept.checkpoint = CheckpointKind::none;
  single.checkpoint = CheckpointKind::plan;
  single.checkpoint_plan = {.segments = {{.begin = 0, .end = program.calls.size()}}};
  auto beside = std::async(std::launch::async, [&] { return run(programs, single, profiled_steps); });
  const int steps = steps_of(scenario);
  Run a = run(programs, kept, std::max(steps, profiled_steps));
  const Run b = beside.get();
  StepProfile profile = Taking(program, a, b).apart(std::move(keeps));
  profile.autocast = scenario.autocast_dtype() != DType::undefined;
  if (whole && steps >= profiled_steps) *whole = std::move(a.whole);
  return profile;
}

}  // namespace headroom
