// Characters of Python's names.
#pragma once

#include <array>
#include <cstddef>

namespace headroom::recovery {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

namespace detail {
inline constexpr auto in_name = [] {
  std::array<bool, 256> table{};
  for (int c = 0; c < 128; ++c)
    table[static_cast<std::size_t>(c)] = begins_name(static_cast<char>(c)) || is_digit(static_cast<char>(c));
  return table;
}();
}  // namespace detail

constexpr bool is_in_name(char c) { return detail::in_name[static_cast<unsigned char>(c)]; }

}  // namespace headroom::recovery
