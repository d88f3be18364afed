// Style: what reports for a terminal share: colours, columns, bars.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::report {

struct TableStyle {
  bool colours = false;
  int width = 100;
};

/// Paints for a terminal when colours are wanted.
class Text {
 public:
  explicit Text(const TableStyle& style) : colours_(style.colours) {}

  std::string bold(const std::string& s) const { return paint("1", s); }
  std::string dim(const std::string& s) const { return paint("2", s); }
  std::string good(const std::string& s) const { return paint("1;32", s); }
  std::string bad(const std::string& s) const { return paint("1;31", s); }
  std::string colour(int n, const std::string& s) const { return paint("38;5;" + std::to_string(n), s); }

 private:
  std::string paint(const std::string& code, const std::string& s) const {
    return colours_ && !s.empty() ? "\033[" + code + "m" + s + "\033[0m" : s;
  }
  bool colours_;
};

/// Columns that `s` takes in a terminal, counting UTF-8 code points (names here hold no wide characters often).
std::size_t columns(std::string_view s);
/// `s` made harmless, in exactly `width` columns: the end of what is longer, since it tells more of a path than its
/// front.
std::string fit(std::string_view s, std::size_t width);

/// As fit, without blanks behind.
std::string clipped(std::string_view s, std::size_t width);
/// `text` in lines of `width` columns, broken between words; every line begins with `indent` spaces, the first with
/// `first` instead.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent, const std::string& first);

/// A bar of `share` (0..1) of `width` columns.
std::string bar(double share, int width);
/// One column a sample (0..1), a block of that height.
std::string sparkline(const std::vector<double>& samples);

}  // namespace headroom::report
