#include "estimator/plan/advise.h"

#include <algorithm>
#include <map>
#include <utility>

#include "estimator/base/error.h"

namespace headroom {
namespace {

/// Micro-batches of a step that the search simulates: from the second on each meets the same memory. The set that is
/// chosen is simulated with all of them.
constexpr std::int64_t searched_accumulation = 4;

ChangedRun run_of(Estimator& estimator, const Scenario& scenario) {
  const Estimate e = estimator.estimate(scenario);
  return {scenario, e.peak_allocated, e.peak_reserved, e.peak_device, e.fits, e.spare};
}

bool saves(const ChangedRun& now, const ChangedRun& before) {
  return now.reserved < before.reserved || (now.reserved == before.reserved && now.allocated < before.allocated);
}

/// One rung, or none, of every group.
using Choice = std::vector<int>;
constexpr int none = -1;

class Search {
 public:
  Search(Estimator& estimator, const Advice& advice, const std::vector<Rung>& rungs)
      : estimator_(estimator), scenario_(advice.base.scenario) {
    for (const Rung& r : rungs) {
      const auto step = std::find_if(advice.steps.begin(), advice.steps.end(),
                                     [&](const AdviceStep& s) { return s.rung.key == r.key; });
      const bool helps = step != advice.steps.end()
                             ? step->kept || step->alone.reserved < advice.base.peak_reserved
                             : r.level > 1;  // a smaller micro-batch than the one that was walked
      if (!helps) continue;
      auto group = std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) { return g[0].group == r.group; });
      if (group == groups_.end()) group = groups_.insert(groups_.end(), std::vector<Rung>{});
      group->push_back(r);
    }
  }

  ChangeSet cheapest() {
    nearest_.assign(groups_.size(), none);
    const Choice all = strongest();
    if (fits(all)) {
      remember_what_all_sets_need(all);
      for (const Choice& c : by_cost()) {
        if (part_of_a_failure(c) || !fits(c)) continue;
        ChangeSet set = exact(without_needless(c));
        if (*set.run.fits) return set;
      }
    }
    return exact(nearest_);
  }

 private:
  Scenario scenario_of(const Choice& c) const {
    Scenario s = scenario_;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (c[g] != none) s = groups_[g][static_cast<std::size_t>(c[g])].apply(std::move(s));
    return s;
  }

  /// nullptr: it cannot be run.
  const ChangedRun* run(const Choice& c) {
    const auto [at, fresh] = runs_.try_emplace(c);
    if (fresh) {
      try {
        Scenario s = scenario_of(c);
        s.accumulate = std::min(s.accumulate, std::max(searched_accumulation, scenario_.accumulate));
        at->second = run_of(estimator_, s);
      } catch (const Error&) {
      }
    }
    return at->second ? &*at->second : nullptr;
  }

  bool fits(const Choice& c) {
    const ChangedRun* r = run(c);
    if (r && r->spare > run(nearest_)->spare) nearest_ = c;
    if (r && *r->fits) return true;
    failures_.push_back(c);
    return false;
  }

  /// Of every group the rung of which least is left.
  Choice strongest() {
    Choice all(groups_.size(), none);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      std::optional<Bytes> least;
      for (std::size_t i = 0; i < groups_[g].size(); ++i) {
        Choice c = all;
        c[g] = static_cast<int>(i);
        const ChangedRun* r = run(c);
        if (!r || (least && r->reserved >= *least)) continue;
        least = r->reserved;
        all[g] = c[g];
      }
    }
    return all;
  }

  /// A set is part of a failing one when each of its changes is in there, or a smaller micro-batch.
  bool part_of_a_failure(const Choice& c) const {
    return std::any_of(failures_.begin(), failures_.end(), [&](const Choice& failure) {
      for (std::size_t g = 0; g < c.size(); ++g)
        if (c[g] != none && c[g] != failure[g] && !(groups_[g][0].group == "batch" && c[g] < failure[g])) return false;
      return true;
    });
  }

  /// All changes with a lesser one in one place, or none there: where that fails, nothing below is worth a simulation.
  void remember_what_all_sets_need(const Choice& all) {
    for (std::size_t g = 0; g < groups_.size(); ++g)
      for (int i = static_cast<int>(groups_[g].size()) - 1; i >= none; --i) {
        Choice c = all;
        c[g] = i;
        if (!part_of_a_failure(c)) fits(c);
      }
  }

  bool is_free(std::size_t g) const { return groups_[g][0].cost.weight <= 1; }

  /// All sets, the cheapest first; changes that cost nothing are in each.
  std::vector<Choice> by_cost() const {
    std::vector<std::pair<int, Choice>> sets{{0, {}}};
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      std::vector<std::pair<int, Choice>> more;
      for (const auto& [cost, c] : sets)
        for (int i = is_free(g) ? 0 : none; i < (is_free(g) ? 1 : static_cast<int>(groups_[g].size())); ++i) {
          more.emplace_back(cost, c);
          more.back().second.push_back(i);
          if (i != none) more.back().first += groups_[g][static_cast<std::size_t>(i)].cost.weight;
        }
      sets = std::move(more);
    }
    std::stable_sort(sets.begin(), sets.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Choice> out;
    out.reserve(sets.size());
    for (auto& [cost, c] : sets) out.push_back(std::move(c));
    return out;
  }

  Choice without_needless(Choice c) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (!is_free(g) || c[g] == none) continue;
      Choice less = c;
      less[g] = none;
      if (fits(less)) c = less;
    }
    return c;
  }

  ChangeSet exact(const Choice& c) {
    ChangeSet set;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (c[g] != none) set.rungs.push_back(groups_[g][static_cast<std::size_t>(c[g])]);
    set.run = run_of(estimator_, scenario_of(c));
    return set;
  }

  Estimator& estimator_;
  const Scenario& scenario_;
  std::vector<std::vector<Rung>> groups_;
  std::map<Choice, std::optional<ChangedRun>> runs_;
  std::vector<Choice> failures_;
  Choice nearest_;
};

std::optional<ChangedRun> validation_run(Estimator& estimator, Scenario s) {
  s.task = Task::infer;
  s.outputs.reset();
  s.leak = Leak::none;
  try {
    return run_of(estimator, s);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Advice advise(Estimator& estimator, const Scenario& scenario) {
  Advice out;
  Stages stages;
  out.base = estimator.estimate(scenario, &stages);
  const Question question{scenario, out.base, stages};
  const std::vector<Rung> rungs = ladder(question);
  const ChangedRun base{scenario,      out.base.peak_allocated, out.base.peak_reserved, out.base.peak_device,
                        out.base.fits, out.base.spare};
  ChangedRun reached = base;
  for (const Rung& r : rungs) {
    if (r.group == "batch" && r.level > 1) continue;
    try {
      AdviceStep step{.rung = r,
                      .alone = run_of(estimator, r.apply(scenario)),
                      .together = run_of(estimator, r.apply(reached.scenario))};
      step.kept = saves(step.together, reached);
      if (step.kept) reached = step.together;
      out.steps.push_back(std::move(step));
    } catch (const Error& e) {
      out.left_out.push_back({r.key, r.title, e.what()});
    }
  }
  out.unmodelled = unmodelled_changes(question);
  if (scenario.training()) out.validation = validation_run(estimator, scenario);
  if (out.base.fits) out.chosen = *out.base.fits ? ChangeSet{{}, base} : Search(estimator, out, rungs).cheapest();
  return out;
}

}  // namespace headroom
