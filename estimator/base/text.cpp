#include "estimator/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace headroom {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 15> units = {{{"", 1},
                                         {"b", 1},
                                         {"k", 1024.0},
                                         {"m", 1048576.0},
                                         {"g", 1073741824.0},
                                         {"t", 1099511627776.0},
                                         {"kib", 1024.0},
                                         {"mib", 1048576.0},
                                         {"gib", 1073741824.0},
                                         {"tib", 1099511627776.0},
                                         {"kb", 1e3},
                                         {"mb", 1e6},
                                         {"gb", 1e9},
                                         {"tb", 1e12},
                                         {"pib", 1125899906842624.0}}};

char lowered(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

/// Letters that differ in their case only are equal.
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int up = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (lowered(a[i - 1]) != lowered(b[j - 1]))});
      diagonal = up;
    }
  }
  return row[b.size()];
}

template <class Range>
std::string_view nearest_of(std::string_view word, const Range& candidates) {
  std::string_view best;
  int best_distance = 2 + static_cast<int>(word.size() / 4);
  for (std::string_view c : candidates) {
    if (c.size() > word.size() + 8 || word.size() > c.size() + 8) continue;
    const int d = edit_distance(word, c);
    if (d < best_distance) {
      best_distance = d;
      best = c;
    }
  }
  return best;
}

/// Length of the valid UTF-8 sequence at the front of `s`, and its code point; 0 when broken.
int utf8_at(std::string_view s, std::uint32_t& point) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char c = byte(0);
  const int n = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
  if (n == 0 || s.size() < static_cast<std::size_t>(n)) return 0;
  point = n == 1 ? c : c & (0x7F >> n);
  for (int i = 1; i < n; ++i) {
    if ((byte(static_cast<std::size_t>(i)) & 0xC0) != 0x80) return 0;
    point = point << 6 | (byte(static_cast<std::size_t>(i)) & 0x3F);
  }
  if ((n == 3 && point < 0x800) || (n == 4 && point < 0x10000) || (point >= 0xD800 && point < 0xE000) ||
      point > 0x10FFFF)
    return 0;
  return n;
}

bool unprintable(std::uint32_t p) {
  return p < 0x20 || (p >= 0x7F && p < 0xA0) || p == 0x00AD || p == 0x061C || (p >= 0x200B && p <= 0x200F) ||
         (p >= 0x2028 && p <= 0x202E) || (p >= 0x2060 && p <= 0x206F) || p == 0xFEFF || (p >= 0xFFF0 && p <= 0xFFFB) ||
         (p >= 0xE0000 && p <= 0xE0FFF);
}

}  // namespace

std::string human(Bytes n) {
  static constexpr std::array<const char*, 6> names = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double v = static_cast<double>(n.count());
  std::size_t u = 0;
  while (std::fabs(v) >= 1023.995 && u + 1 < names.size()) {
    v /= 1024;
    ++u;
  }
  std::array<char, 40> out{};
  if (u == 0)
    std::snprintf(out.data(), out.size(), "%lld B", static_cast<long long>(n.count()));
  else
    std::snprintf(out.data(), out.size(),
                  std::fabs(v) < 10    ? "%.2f %s"
                  : std::fabs(v) < 100 ? "%.1f %s"
                                       : "%.0f %s",
                  v, names[u]);
  return out.data();
}

std::optional<Bytes> parse_size(std::string_view text) {
  text = trim(text);
  double v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc{} || !(v >= 0)) return std::nullopt;
  std::string unit(trim(text.substr(static_cast<std::size_t>(end - text.data()))));
  std::transform(unit.begin(), unit.end(), unit.begin(), lowered);
  for (const Unit& u : units)
    if (u.name == unit) {
      const double bytes = v * u.factor;
      if (bytes >= 9.2e18) return std::nullopt;
      return Bytes(static_cast<std::int64_t>(bytes));
    }
  return std::nullopt;
}

std::string printable(std::string_view name, std::size_t limit) {
  std::string out;
  std::size_t i = 0;
  while (i < name.size()) {
    if (out.size() >= limit) {
      out += "…";
      break;
    }
    std::uint32_t point = 0;
    const int n = utf8_at(name.substr(i), point);
    std::array<char, 16> hex{};
    if (n == 0) {
      std::snprintf(hex.data(), hex.size(), "\\x%02X", static_cast<unsigned>(static_cast<unsigned char>(name[i])));
      out += hex.data();
      ++i;
    } else if (unprintable(point)) {
      std::snprintf(hex.data(), hex.size(), point < 0x100 ? "\\x%02X" : "\\u{%04X}", static_cast<unsigned>(point));
      out += hex.data();
      i += static_cast<std::size_t>(n);
    } else {
      out.append(name.substr(i, static_cast<std::size_t>(n)));
      i += static_cast<std::size_t>(n);
    }
  }
  return out;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  return nearest_of(word, candidates);
}
std::string_view nearest(std::string_view word, std::span<const std::string> candidates) {
  return nearest_of(word, candidates);
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\n' || text.front() == '\r'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return v;
}

}  // namespace headroom
