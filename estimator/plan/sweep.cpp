#include "estimator/plan/sweep.h"

#include <algorithm>
#include <atomic>

#include "estimator/plan/failure.h"
#include "estimator/plan/parallel.h"

namespace headroom {
namespace {

/// What moving along an axis makes anew: the costliest stage that its values do not share.
enum class Remakes : std::uint8_t { programs, trace, timeline };

Remakes remade_by(const Sweep& sweep, std::size_t axis, std::size_t stride) {
  const auto& cells = sweep.cells;
  Remakes most = Remakes::timeline;
  for (std::size_t v = 1; v < sweep.axes[axis].values.size(); ++v) {
    const Scenario &a = cells[0].estimate.scenario, &b = cells[v * stride].estimate.scenario;
    if (!(shape_part(a) == shape_part(b))) return Remakes::programs;
    if (!(step_part(a) == step_part(b))) most = Remakes::trace;
  }
  return most;
}

/// The cells with the axes that remake most outside.
std::vector<std::size_t> order_of(const Sweep& sweep) {
  std::vector<std::size_t> strides(sweep.axes.size(), 1);
  for (std::size_t a = strides.size(); a-- > 1;) strides[a - 1] = strides[a] * sweep.axes[a].values.size();
  std::vector<std::pair<Remakes, std::size_t>> axes;
  for (std::size_t a = 0; a < strides.size(); ++a) axes.emplace_back(remade_by(sweep, a, strides[a]), a);
  std::stable_sort(axes.begin(), axes.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::size_t> order{0};
  for (const auto& [remakes, a] : axes) {
    std::vector<std::size_t> longer;
    for (const std::size_t cell : order)
      for (std::size_t v = 0; v < sweep.axes[a].values.size(); ++v) longer.push_back(cell + v * strides[a]);
    order = std::move(longer);
  }
  return order;
}

/// The figures of `e` without its lists.
Estimate figures_of(Estimate e) {
  e.phases = {};
  e.margins = {};
  e.largest = {};
  e.diagnostics = {};
  e.oom_text = {};
  return e;
}

}  // namespace

std::vector<std::size_t> Sweep::place(std::size_t cell) const {
  std::vector<std::size_t> out(axes.size());
  for (std::size_t a = axes.size(); a-- > 0; cell /= axes[a].values.size()) out[a] = cell % axes[a].values.size();
  return out;
}

void run_sweep(Estimator& estimator, Sweep& sweep, const SweepWork& work) {
  const std::vector<std::size_t> order = order_of(sweep);
  std::atomic<std::size_t> done{0};
  parallel_for(order.size(), work.threads, [&](std::size_t i) {
    SweepCell& cell = sweep.cells[order[i]];
    try {
      if (!cell.error) cell.estimate = figures_of(estimator.estimate(cell.estimate.scenario));
    } catch (...) {
      cell.error = current_failure();
    }
    work.progress(++done);
  });
}

}  // namespace headroom
