#include "estimator/plan/search.h"

#include <algorithm>
#include <cmath>

namespace headroom {
namespace {

/// Of the scan: places that are asked one by one, and of those further up.
constexpr std::int64_t least_scanned = 16, most_scanned = 1024, samples = 256;

/// Works on places of the lattice: 0 is the first number.
class Search {
 public:
  Search(const Lattice& lattice, const std::function<Probe(std::int64_t)>& ask)
      : lattice_(lattice), ask_(ask), last_((lattice.last - lattice.first) / lattice.stride) {}

  Largest run() {
    std::int64_t found = bracket();
    for (std::int64_t higher = scan(found); higher > found; higher = scan(found)) found = higher;
    if (found < 0) return {};
    return {.max = number(found), .at_end = found == last_};
  }

 private:
  std::int64_t number(std::int64_t place) const { return lattice_.first + place * lattice_.stride; }

  const Probe& at(std::int64_t place) {
    const auto known = known_.find(place);
    return known != known_.end() ? known->second : known_.emplace(place, ask_(number(place))).first->second;
  }
  bool yes(std::int64_t place) { return at(place).verdict == Probe::Verdict::yes; }

  /// A place with yes and no right above it (or the last place); -1 when the first says no.
  std::int64_t bracket() {
    if (!yes(0)) return -1;
    std::int64_t low = 0, high = std::min<std::int64_t>(1, last_);
    while (high > low && yes(high)) {
      const std::int64_t next = std::min({crossing(low, high), high * 8 + 8, last_});
      low = high;
      high = std::max(next, std::min(low + 1, last_));
    }
    for (bool halve = false; high - low > 1; halve = !halve) {
      const std::int64_t middle = halve ? low + (high - low) / 2 : std::clamp(crossing(low, high), low + 1, high - 1);
      (yes(middle) ? low : high) = middle;
    }
    return low;
  }

  /// The first place, by the line through what is spare at two, where nothing is.
  std::int64_t crossing(std::int64_t low, std::int64_t high) {
    const Probe &a = at(low), &b = at(high);
    const double fall = static_cast<double>(a.spare) - static_cast<double>(b.spare);
    if (b.verdict == Probe::Verdict::impossible || !(fall > 0))
      return b.verdict == Probe::Verdict::yes ? last_ : low + (high - low) / 2;
    const double steps = static_cast<double>(a.spare) / fall * static_cast<double>(high - low);
    return low + static_cast<std::int64_t>(std::min(steps, static_cast<double>(last_ - low) - 1)) + 1;
  }

  /// The highest place with yes of those the scan above `found` asks; `found` when there is none.
  std::int64_t scan(std::int64_t found) {
    const std::int64_t end = std::min(found + std::max(found / 8, least_scanned), last_);
    const std::int64_t close = std::min(found + most_scanned, end);
    std::int64_t highest = found;
    for (std::int64_t p = found + 1; p <= close; ++p)
      if (yes(p)) highest = p;
    const std::int64_t stride = (end - close) / samples + 1;
    for (std::int64_t p = close + stride; p <= end; p += stride)
      if (yes(p)) highest = p;
    return highest;
  }

  Lattice lattice_;
  const std::function<Probe(std::int64_t)>& ask_;
  std::int64_t last_;
  std::map<std::int64_t, Probe> known_;
};

}  // namespace

Largest search_largest(const Lattice& lattice, const std::function<Probe(std::int64_t)>& ask) {
  return Search(lattice, ask).run();
}

}  // namespace headroom
