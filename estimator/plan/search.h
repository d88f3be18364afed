// search: the largest number that a costly question says yes to, where yes does not have to go over into no at one
// place.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace headroom {

/// What was found of one number.
struct Probe {
  enum class Verdict : std::uint8_t { yes, no, impossible } verdict = Verdict::impossible;
  /// How much is left (yes: >= 0) or missing (no: < 0). It steers the search and decides nothing.
  std::int64_t spare = 0;
};

/// The numbers that are tried: first, first + stride, ...
struct Lattice {
  std::int64_t first = 1;
  std::int64_t stride = 1;
  std::int64_t last = 0;  ///< none above it
};

struct Largest {
  std::int64_t max = 0;  ///< 0: none
  bool at_end = false;   ///< `max` is the lattice's last number, and it might be more
};

/// The largest N of the lattice with yes, such that every number that the scan above it asks has no.
///
/// A bracket (a yes below a no) is made and narrowed, by the line through what is spare at both ends where it helps and
/// by halving where it does not, until its ends are neighbours. Yes may return above: memory saws where blocks are
/// rounded, a library changes its algorithm, a size stops being padded, or the allocator frees its cache in time. So
/// the scan asks the numbers above, an eighth of N and at least 16: the first 1,024 one by one, of the rest 256 at even
/// distances. A yes there starts the scan anew. `ask` is called once for each number.
Largest search_largest(const Lattice& lattice, const std::function<Probe(std::int64_t)>& ask);

}  // namespace headroom
