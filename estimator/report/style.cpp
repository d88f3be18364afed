#include "estimator/report/style.h"

#include <algorithm>

#include "estimator/base/text.h"

namespace headroom::report {

std::size_t columns(std::string_view s) {
  return static_cast<std::size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string fit(std::string_view s, std::size_t width) {
  std::string out = printable(s, 400);
  if (columns(out) > width) {
    std::size_t from = 0;
    while (columns(std::string_view(out).substr(from)) + 1 > width) ++from;
    while (from < out.size() && (out[from] & 0xC0) == 0x80) ++from;
    out = "…" + out.substr(from);
  }
  return out + std::string(width - std::min(width, columns(out)), ' ');
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent, const std::string& first) {
  std::string out = first;
  std::size_t at = columns(first);
  bool begun = false;
  for (const std::string_view word : split(text, ' ')) {
    if (begun && at + 1 + columns(word) > width) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (begun) {
      out += " ";
      ++at;
    }
    out += word;
    at += columns(word);
    begun = true;
  }
  return out + "\n";
}

std::string clipped(std::string_view s, std::size_t width) {
  const std::string fitted = fit(s, width);
  return std::string(fitted.substr(0, fitted.find_last_not_of(' ') + 1));
}

std::string bar(double share, int width) {
  static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int parts = static_cast<int>(std::max(0.0, std::min(1.0, share)) * width * 8 + 0.5);
  std::string out;
  for (int i = 0; i < parts / 8; ++i) out += "█";
  return out + eighths[parts % 8];
}

std::string sparkline(const std::vector<double>& samples) {
  static constexpr const char* heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string out;
  for (const double s : samples) out += heights[static_cast<int>(std::clamp(s, 0.0, 1.0) * 7 + 0.5)];
  return out;
}

}  // namespace headroom::report
