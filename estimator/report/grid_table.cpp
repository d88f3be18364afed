#include <algorithm>

#include "estimator/base/text.h"
#include "estimator/report/grid.h"

namespace headroom::report {
namespace {

constexpr std::size_t widest_key = 36;
constexpr std::size_t widest_cell = 24;
/// Backgrounds of xterm's 256 colours from cool to hot, which black text can be read on.
constexpr int heat_colours[] = {151, 150, 186, 222, 221, 215, 209, 203};

class GridTable {
 public:
  GridTable(const Grid& grid, const TableStyle& style)
      : grid_(grid), style_(style), text_(style), width_(static_cast<std::size_t>(std::clamp(style.width, 40, 400))) {
    keys_ = static_cast<std::size_t>(
        std::count_if(grid.columns.begin(), grid.columns.end(), [](const auto& c) { return c.key; }));
    for (std::size_t c = 0; c < grid.columns.size(); ++c) {
      std::size_t widest = columns(printable(grid.columns[c].heading));
      bool signs = false;
      for (const auto& row : grid.rows) {
        widest = std::max(widest, columns(printable(row[c].text)));
        signs = signs || row[c].verdict == GridCell::Verdict::does_not_fit;
      }
      signs_.push_back(signs);
      widths_.push_back(std::min(widest, grid.columns[c].key ? widest_key : widest_cell));
    }
  }

  std::string all() {
    if (!grid_.title.empty()) out_ += "\n" + text_.bold(clipped(grid_.title, width_)) + "\n";
    std::size_t key_width = 0;
    for (std::size_t c = 0; c < keys_; ++c) key_width += 2 + widths_[c];
    std::size_t from = keys_;
    do {
      std::size_t to = from, used = key_width;
      while (to < widths_.size() && (to == from || used + cell_width(to) <= width_)) used += cell_width(to++);
      if (from > keys_) out_ += "\n";
      block(from, to, key_width);
      from = to;
    } while (from < widths_.size());
    return std::move(out_);
  }

 private:
  std::size_t cell_width(std::size_t c) const { return 2 + widths_[c] + (signs_[c] ? 2 : 0); }

  std::string padded(const std::string& text, std::size_t c) const {
    const std::string shown = clipped(text, widths_[c]);
    const std::string blanks(widths_[c] - std::min(widths_[c], columns(shown)), ' ');
    return grid_.columns[c].number ? blanks + shown : shown + blanks;
  }

  /// The keys and the columns [from, to).
  void block(std::size_t from, std::size_t to, std::size_t key_width) {
    if (!grid_.across.empty())
      out_ += std::string(key_width, ' ') + "  " + text_.dim(clipped(grid_.across, width_ - key_width - 2)) + "\n";
    std::vector<std::size_t> shown;
    for (std::size_t c = 0; c < to; ++c)
      if (c < keys_ || c >= from) shown.push_back(c);
    std::string heading;
    for (const std::size_t c : shown) heading += "  " + padded(grid_.columns[c].heading, c) + (signs_[c] ? "  " : "");
    out_ += text_.dim(heading.substr(0, heading.find_last_not_of(' ') + 1)) + "\n";
    for (const auto& row : grid_.rows) {
      for (const std::size_t c : shown) cell(row[c], c);
      out_.erase(out_.find_last_not_of(' ') + 1);
      out_ += "\n";
    }
  }

  void cell(const GridCell& cell, std::size_t c) {
    out_ += "  " + heated(padded(cell.text, c), cell.heat);
    if (signs_[c]) out_ += cell.verdict == GridCell::Verdict::does_not_fit ? " " + text_.bad("✗") : "  ";
  }

  std::string heated(const std::string& text, double heat) const {
    if (heat < 0 || !style_.colours) return text;
    const auto i =
        static_cast<std::size_t>(std::clamp(heat, 0.0, 0.999) * static_cast<double>(std::size(heat_colours)));
    return "\033[38;5;16;48;5;" + std::to_string(heat_colours[i]) + "m" + text + "\033[0m";
  }

  const Grid& grid_;
  TableStyle style_;
  Text text_;
  std::size_t width_;
  std::size_t keys_ = 0;
  std::vector<bool> signs_;  ///< by column: some cell does not fit, so that each has room for the sign
  std::vector<std::size_t> widths_;
  std::string out_;
};

}  // namespace

std::string grid_table(const GridDocument& d, const TableStyle& style) {
  const Text text(style);
  const auto width = static_cast<std::size_t>(std::clamp(style.width, 40, 120));
  std::string out = text.bold(clipped(d.title, width)) + "\n";
  if (!d.subtitle.empty()) out += text.dim(wrapped(printable(d.subtitle, 600), width, 0, ""));
  for (const Grid& g : d.grids) out += (g.title.empty() ? "\n" : "") + GridTable(g, style).all();
  if (!d.notes.empty()) out += "\n";
  for (const std::string& n : d.notes) out += text.dim(wrapped(printable(n, 600), width, 2, "  "));
  return out;
}

}  // namespace headroom::report
