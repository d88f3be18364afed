#include "estimator/report/course_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "estimator/base/text.h"

namespace headroom::report {
namespace {

constexpr double width = 720, height = 330;
constexpr double left = 62, right = 8, top = 34, bottom = 62;  ///< what is kept free for labels

/// By category, from the bottom of the stack: what stays first, what comes and goes last. Told apart by people who see
/// red and green alike (after Okabe and Ito), and by their lightness in print.
struct Layer {
  Category category;
  const char* name;
  const char* colour;
};
constexpr auto layers = std::to_array<Layer>({{Category::weights, "weights", "0072b2"},
                                              {Category::buffers, "buffers", "004c77"},
                                              {Category::optimizer_state, "optimizer state", "56b4e9"},
                                              {Category::inputs, "inputs", "999999"},
                                              {Category::workspaces, "workspaces", "cccccc"},
                                              {Category::gradients, "gradients", "009e73"},
                                              {Category::activations, "activations", "e69f00"},
                                              {Category::forward_temporaries, "forward temporaries", "f0e442"},
                                              {Category::backward_temporaries, "backward temporaries", "d55e00"},
                                              {Category::optimizer_temporaries, "optimizer temporaries", "cc79a7"}});

/// 1, 2 or 5 times a power of ten MiB or GiB: about four of them up to `bytes`.
double tick_of(double bytes) {
  const double unit = bytes >= static_cast<double>(GiB) ? static_cast<double>(GiB) : static_cast<double>(MiB);
  const double raw = bytes / unit / 4, power = std::pow(10, std::floor(std::log10(raw)));
  const double times = raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1;
  return std::max(times * power, 0.01) * unit;
}

}  // namespace

Picture course_picture(const Course& course, const Estimate& e) {
  Picture p{.width = width, .height = height, .title = "Allocated bytes through step " + std::to_string(course.step)};
  if (course.points.empty()) return p;
  // The device's line is drawn where it does not make all else flat.
  const double peak = static_cast<double>(std::max(e.peak_allocated, Bytes(1)).count());
  const double total = static_cast<double>(e.scenario.device.total_bytes.count());
  const bool card = total > 0 && total < 1.6 * peak;
  const double reserved = static_cast<double>(e.peak_reserved.count());
  const double highest = 1.04 * std::max({peak, reserved, card ? total : 0});
  const double column = (width - left - right) / static_cast<double>(course.points.size());
  const auto x = [&](double columns) { return left + column * columns; };
  const auto y = [&](double bytes) { return height - bottom - (height - top - bottom) * bytes / highest; };

  std::vector<double> floor(course.points.size(), 0);
  double legend_x = left, legend_y = height - 26;
  for (const Layer& l : layers) {
    const std::size_t before = p.boxes.size();
    for (std::size_t i = 0; i < course.points.size(); ++i) {
      const auto bytes = static_cast<double>(course.points[i].categories[static_cast<std::size_t>(l.category)].count());
      const Picture::Box box{x(static_cast<double>(i)), y(floor[i] + bytes), column, y(floor[i]) - y(floor[i] + bytes),
                             l.colour};
      floor[i] += bytes;
      if (box.height < 0.05) continue;
      // Columns that are alike are one box.
      Picture::Box* last = p.boxes.size() > before ? &p.boxes.back() : nullptr;
      if (last && std::abs(last->x + last->width - box.x) < 0.01 && std::abs(last->y - box.y) < 0.05 &&
          std::abs(last->height - box.height) < 0.05)
        last->width += column;
      else
        p.boxes.push_back(box);
    }
    if (p.boxes.size() == before) continue;
    const double needs = 24 + 6.3 * static_cast<double>(std::string_view(l.name).size());
    if (legend_x + needs > width) {
      legend_x = left;
      legend_y += 16;
    }
    p.boxes.push_back({legend_x, legend_y - 8, 9, 9, l.colour});
    p.labels.push_back({legend_x + 13, legend_y, l.name});
    legend_x += needs;
  }

  const double step = tick_of(highest);
  for (double at = 0; at < highest; at += step) {
    p.lines.push_back({left - 4, y(at), 4});
    p.labels.push_back({left - 7, y(at) + 3.5, human(Bytes(static_cast<std::int64_t>(at))), Picture::Align::right});
  }
  p.lines.push_back({.x = left, .y = top, .length = height - top - bottom, .down = true});
  p.lines.push_back({left, height - bottom, width - left - right});
  for (std::size_t i = 0; i < course.phases.size(); ++i) {
    const double from = x(static_cast<double>(course.phases[i].from));
    const double to = i + 1 < course.phases.size() ? x(static_cast<double>(course.phases[i + 1].from)) : width - right;
    if (i > 0) p.lines.push_back({.x = from, .y = height - bottom, .length = 5, .down = true});
    if (to - from > 54)
      p.labels.push_back({(from + to) / 2, height - bottom + 15, std::string(name_of(course.phases[i].phase)),
                          Picture::Align::middle});
  }
  p.lines.push_back({.x = left, .y = y(reserved), .length = width - left - right, .dashed = true});
  p.labels.push_back(
      {width - right, y(reserved) - 4, "reserved, at most " + human(e.peak_reserved), Picture::Align::right});
  if (card) {
    p.lines.push_back({left, y(total), width - left - right});
    p.labels.push_back({left + 4, y(total) - 4, "the card: " + human(e.scenario.device.total_bytes)});
  }
  const double at = x(static_cast<double>(course.peak) + 0.5);
  p.lines.push_back({.x = at, .y = top - 6, .length = y(peak) - top + 6, .down = true});
  p.labels.push_back(
      {std::clamp(at, left + 70, width - 80), top - 10, "peak " + human(e.peak_allocated), Picture::Align::middle});
  return p;
}

}  // namespace headroom::report
