// search_largest against asking every number, where yes goes over into no once, saws, or skips numbers.
#include "estimator/plan/search.h"

#include <doctest/doctest.h>

#include <random>
#include <set>

namespace headroom {
namespace {

using Verdict = Probe::Verdict;

/// A need that grows by `slope` from `base`, up and down by up to `noise`, against `whole`.
struct Need {
  std::int64_t base, slope, noise, whole;
  std::uint64_t seed;

  std::int64_t of(std::int64_t n) const {
    std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(n));
    return base + slope * n + (noise > 0 ? static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(noise)) : 0);
  }
  Probe ask(std::int64_t n) const {
    const std::int64_t spare = whole - of(n);
    return {.verdict = spare >= 0 ? Verdict::yes : Verdict::no, .spare = spare};
  }
  std::int64_t brute_force(const Lattice& l) const {
    std::int64_t best = 0;
    for (std::int64_t n = l.first; n <= l.last; n += l.stride)
      if (ask(n).verdict == Verdict::yes) best = n;
    return best;
  }
};

TEST_CASE("a need that only grows: few questions, each number once") {
  for (const std::int64_t whole : {1'000, 12'345, 999'999}) {
    const Need need{.base = 500, .slope = 7, .noise = 0, .whole = whole, .seed = 0};
    std::multiset<std::int64_t> asked;
    const Largest found = search_largest({.last = 1'000'000}, [&](std::int64_t n) {
      asked.insert(n);
      return need.ask(n);
    });
    CHECK(found.max == (whole - 500) / 7);
    CHECK_FALSE(found.at_end);
    CHECK(asked.size() < 30 + (whole / 7 < 8'192 ? whole / 56 : 1'280));
    for (const std::int64_t n : asked) CHECK(asked.count(n) == 1);
  }
}

TEST_CASE("a need that saws: what every number says") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    // Up to fourteen numbers' worth of noise: the scan of sixteen sees all of it.
    const Need need{.base = 1'000,
                    .slope = 100,
                    .noise = 1'400,
                    .whole = 1'300 + static_cast<std::int64_t>(seed) * 97,
                    .seed = seed};
    const Lattice lattice{.last = 2'000};
    const Largest found = search_largest(lattice, [&](std::int64_t n) { return need.ask(n); });
    CHECK_MESSAGE(found.max == need.brute_force(lattice), "seed ", seed);
  }
}

TEST_CASE("numbers far apart, and some that cannot be asked") {
  const Need need{.base = 0, .slope = 10, .noise = 0, .whole = 10'000, .seed = 0};
  const Lattice lattice{.first = 32, .stride = 32, .last = 32 * 1'000};
  CHECK(search_largest(lattice, [&](std::int64_t n) { return need.ask(n); }).max == 992);
  // Sizes from 4,096 on are refused.
  const Need small{.base = 0, .slope = 1, .noise = 0, .whole = 1'000'000, .seed = 0};
  const auto ask = [&](std::int64_t n) { return n < 4'096 ? small.ask(n) : Probe{}; };
  CHECK(search_largest(lattice, ask).max == 4'064);
}

TEST_CASE("none, and no end") {
  const Need need{.base = 100, .slope = 1, .noise = 0, .whole = 50, .seed = 0};
  CHECK(search_largest({.last = 100}, [&](std::int64_t n) { return need.ask(n); }).max == 0);
  const Need flat{.base = 10, .slope = 0, .noise = 0, .whole = 50, .seed = 0};
  const Largest all = search_largest({.last = 100}, [&](std::int64_t n) { return flat.ask(n); });
  CHECK(all.max == 100);
  CHECK(all.at_end);
  const Largest one = search_largest({.first = 224, .last = 224}, [&](std::int64_t n) { return flat.ask(n); });
  CHECK(one.max == 224);
}

TEST_CASE("the smallest does not fit, a larger one does") {
  const auto ask = [](std::int64_t n) -> Probe {
    return {.verdict = n == 3 ? Verdict::yes : Verdict::no, .spare = n == 3 ? 1 : -1};
  };
  CHECK(search_largest({.last = 100}, ask).max == 3);
}

}  // namespace
}  // namespace headroom
