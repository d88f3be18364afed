// The card table as it is asked: every name and alias finds its card, in any spelling, and no other.
#include "estimator/plan/cards.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "estimator/base/error.h"

namespace headroom {
namespace {

TEST_CASE("names and aliases resolve to their card") {
  for (const Card& c : cards()) {
    CHECK(card_named(c.name).name == c.name);
    CHECK_FALSE(c.source.empty());
    for (std::string alias : c.aliases) {
      CHECK(card_named(alias).name == c.name);
      std::replace(alias.begin(), alias.end(), '-', ' ');
      std::transform(alias.begin(), alias.end(), alias.begin(), [](unsigned char l) { return std::toupper(l); });
      CHECK(card_named(alias).name == c.name);
    }
  }
  CHECK_THROWS_AS(card_named("rtx9999"), Error);
}

TEST_CASE("the usual cards are of different sizes and kinds") {
  std::set<std::int64_t> sizes;
  for (const Card& c : cards())
    if (c.usual) sizes.insert(c.device.total_bytes.count() >> 30);
  CHECK(sizes.size() >= 12);
  CHECK(cards().size() >= 60);
}

}  // namespace
}  // namespace headroom
