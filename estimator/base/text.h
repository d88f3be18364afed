// Text for people: sizes with their unit, names made harmless, near misses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.h"

namespace headroom {

/// "3.42 GiB", "512 B": 1024-based, three significant digits above a KiB.
std::string human(Bytes n);

/// Reads "24GiB", "24GB", "24G" (= GiB), "80e9"; nullopt when it is no size. Units: B, K/M/G/T (1024), KiB.., KB..
/// (1000).
std::optional<Bytes> parse_size(std::string_view text);

/// `name` with control characters, escape sequences, bidirectional marks and broken UTF-8 replaced by visible \xNN or
/// \u{NNNN} escapes, cut to `limit` bytes with "…". Safe for terminals and logs; HTML and LaTeX escape on top of it.
std::string printable(std::string_view name, std::size_t limit = 120);

/// The candidate nearest to `word` by edit distance when it is near enough to suggest (distance <= 1 + length/4), else
/// empty.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);
std::string_view nearest(std::string_view word, std::span<const std::string> candidates);

/// Shell-style match with * and ? (no brackets), as Python's fnmatch on module paths.
bool glob_match(std::string_view pattern, std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
/// Whole text as a decimal integer; nullopt when it is not, or out of range.
std::optional<std::int64_t> parse_int(std::string_view text);

}  // namespace headroom
