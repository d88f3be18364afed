#include "estimator/plan/fit.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>

#include "estimator/plan/failure.h"
#include "estimator/plan/parallel.h"
#include "estimator/plan/search.h"
#include "estimator/plan/varied_sizes.h"

namespace headroom {
namespace {

/// Sizes up to which one that runs is looked for.
constexpr std::int64_t smallest_sizes = 1024;

class Fit {
 public:
  Fit(Estimator& estimator, const FitQuestion& question)
      : estimator_(estimator), q_(question), varied_(estimator.model(), question.max) {}

  /// Finds the sizes that run; to be called first.
  void prepare() {
    if (varied_.none()) return;
    std::vector<std::int64_t> runs;
    std::optional<Error> first_failure;
    for (std::int64_t n = 1; n <= smallest_sizes && runs.size() < 3; ++n) {
      try {
        const ShapedPrograms programs = shaped_programs(estimator_.model(), varied_.at(q_.scenario, n));
        if (runs.empty()) varied_.check(programs);
        runs.push_back(n);
      } catch (const Error& e) {
        if (e.code() != Exit::bad_input) throw;
        if (!first_failure) first_failure = e;
      }
    }
    if (runs.empty()) throw *first_failure;
    lattice_.first = runs[0];
    if (runs.size() > 1) lattice_.stride = std::gcd(runs[1] - runs[0], runs.back() - runs[0]);
    lattice_.last = runs.size() > 1 ? lattice_.first + (size_limit - lattice_.first) / lattice_.stride * lattice_.stride
                                    : lattice_.first;
  }

  CardFit answer(const Device& device) {
    CardFit out;
    out.device = device;
    try {
      if (varied_.none())
        own_sizes(out);
      else
        largest(out);
      if (q_.global_batch) accumulate(out);
    } catch (...) {
      out.error = current_failure();
    }
    return out;
  }

 private:
  Scenario on(const Device& device, Scenario s) const {
    s.device = device;
    return s;
  }

  void own_sizes(CardFit& out) {
    out.at = estimator_.estimate(on(out.device, q_.scenario));
    out.max = *out.at->fits ? 1 : 0;
  }

  void largest(CardFit& out) {
    std::map<std::int64_t, Estimate> near;  ///< estimates of this search, for the two that are shown
    std::map<std::int64_t, Error> failures;
    const auto ask = [&](std::int64_t n) -> Probe {
      try {
        Estimate e = estimator_.estimate(on(out.device, varied_.at(q_.scenario, n)));
        const Probe probe{.verdict = *e.fits ? Probe::Verdict::yes : Probe::Verdict::no,
                          .spare = *e.fits ? std::max<std::int64_t>(e.spare.count(), 0)
                                           : std::min<std::int64_t>(e.spare.count(), -1)};
        near.emplace(n, std::move(e));
        return probe;
      } catch (...) {
        const Error e = current_failure();
        if (e.code() != Exit::bad_input) throw;
        failures.emplace(n, e);
        return {};
      }
    };
    const Largest found = search_largest(lattice_, ask);
    out.max = found.max;
    out.at_limit = found.at_end && lattice_.last > lattice_.first;
    if (const auto at = near.find(found.max); at != near.end()) out.at = std::move(at->second);
    const std::int64_t next = found.max > 0 ? found.max + lattice_.stride : lattice_.first;
    if (next > lattice_.last) return;
    out.next = next;
    if (const auto above = near.find(next); above != near.end()) out.above = std::move(above->second);
    if (const auto failure = failures.find(next); failure != failures.end()) out.above_fails = failure->second;
  }

  void accumulate(CardFit& out) {
    const std::int64_t global = *q_.global_batch;
    const std::int64_t most = varied_.none() ? q_.scenario.batch.value_or(0) : out.max;
    for (std::int64_t micro = std::min(most, global); micro > 0 && out.fits(); --micro) {
      if (global % micro != 0) continue;
      const std::int64_t steps = global / micro;
      Scenario s = on(out.device, q_.scenario);
      s.batch = micro;
      s.accumulate = std::min(steps, simulated_accumulation);
      Estimate e = estimator_.estimate(s);
      if (!*e.fits) continue;
      out.accumulation = {
          .micro_batch = micro, .steps = steps, .cards = (global + most - 1) / most, .estimate = std::move(e)};
      return;
    }
  }

  Estimator& estimator_;
  const FitQuestion& q_;
  VariedSizes varied_;
  Lattice lattice_;
};

}  // namespace

std::vector<CardFit> fit(Estimator& estimator, const FitQuestion& question, const FitWork& work) {
  Fit fit(estimator, question);
  fit.prepare();
  std::vector<CardFit> out(question.devices.size());
  std::atomic<std::size_t> done{0};
  parallel_for(out.size(), work.threads, [&](std::size_t i) {
    out[i] = fit.answer(question.devices[i]);
    work.progress(++done);
  });
  return out;
}

}  // namespace headroom
