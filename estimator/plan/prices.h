// Prices: what the user pays for cards. None are built in.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct Price {
  double per_hour = 0;   ///< of one card
  std::string currency;  ///< as the file says; may be empty
};

class Prices {
 public:
  /// Reads a CSV with a header that names `gpu` (a card's name or alias) and `price`,
  /// and perhaps `currency`; other columns are left alone. Of several prices of a card the lowest counts. Throws
  /// Error(bad_input) with the line.
  static Prices read(const std::string& path);

  /// Of the card of that name (Card::name; empty: none).
  std::optional<Price> of(std::string_view card) const;

 private:
  std::vector<std::pair<std::string, Price>> by_card_;
};

}  // namespace headroom
