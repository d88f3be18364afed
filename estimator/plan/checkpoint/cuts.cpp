#include "estimator/plan/checkpoint/cuts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headroom {
namespace {

/// Pairs of cuts with a segment between them, by level. A segment crosses no call of a lower level than its ends have,
/// so in a stretch between two lower cuts those of one level pair with each other, and with these two.
std::vector<std::size_t> pairs_by_level(const StepProfile& p, const std::vector<std::size_t>& cuts) {
  std::vector<std::size_t> pairs, open;  // by level: of stretches that are over, cuts of the one that is not
  const auto end_above = [&](std::size_t level) {
    for (std::size_t l = level + 1; l < open.size(); ++l) {
      pairs[l] += open[l] * (open[l] + 3) / 2;
      open[l] = 0;
    }
  };
  auto cut = cuts.begin();
  for (std::size_t c = 0; c <= p.calls; ++c) {
    const std::size_t level = p.call[c].level;
    if (level >= open.size()) {
      pairs.resize(level + 1);
      open.resize(level + 1);
    }
    end_above(level);
    if (*cut != c) continue;
    ++open[level];
    ++cut;
  }
  end_above(0);
  return pairs;
}

}  // namespace

std::vector<std::size_t> cuts_of(const StepProfile& p, std::size_t most_pairs) {
  std::vector<std::size_t> cuts(p.calls + 1);
  std::iota(cuts.begin(), cuts.end(), std::size_t{0});
  const auto less_lives = [&](std::size_t a, std::size_t b) {
    const auto live = [&](std::size_t c) {
      return p.call[c].event == 0 ? p.live_at_start : p.events[p.call[c].event - 1].live;
    };
    return live(a) < live(b);
  };
  while (true) {
    const std::vector<std::size_t> pairs = pairs_by_level(p, cuts);
    const std::size_t all = std::accumulate(pairs.begin(), pairs.end(), std::size_t{0});
    if (all <= most_pairs) return cuts;
    const auto crowded = std::max_element(pairs.begin(), pairs.end());
    std::vector<std::size_t> of_level;
    for (const std::size_t c : cuts)
      if (c != 0 && c != p.calls && p.call[c].level == static_cast<std::size_t>(crowded - pairs.begin()))
        of_level.push_back(c);
    if (of_level.size() < 2) return cuts;
    // Pairs are about as the square of the cuts.
    const std::size_t too_many = std::min(all - most_pairs, *crowded);
    const double share = 1 - std::sqrt(1 - static_cast<double>(too_many) / static_cast<double>(*crowded));
    const auto one_of = std::clamp(static_cast<std::ptrdiff_t>(1 / share), std::ptrdiff_t{2}, std::ssize(of_level));
    std::vector<std::size_t> dropped;
    for (auto i = of_level.begin(); of_level.end() - i >= one_of; i += one_of)
      dropped.push_back(*std::max_element(i, i + one_of, less_lives));
    std::erase_if(cuts, [&](std::size_t c) { return std::binary_search(dropped.begin(), dropped.end(), c); });
  }
}

}  // namespace headroom
