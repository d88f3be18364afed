#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/text.h"
#include "estimator/report/figures.h"
#include "estimator/report/report.h"

namespace headroom::report {
namespace {

/// Columns that a string takes in a terminal, counting UTF-8 code points (names here hold no wide characters often).
std::size_t columns(std::string_view s) {
  return static_cast<std::size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string fit(std::string_view s, std::size_t width) {
  std::string out = printable(s, 400);
  if (columns(out) > width) {
    // Keep the end of a path: it tells more than its front.
    std::size_t from = 0;
    while (columns(std::string_view(out).substr(from)) + 1 > width) ++from;
    while (from < out.size() && (out[from] & 0xC0) == 0x80) ++from;
    out = "…" + out.substr(from);
  }
  return out + std::string(width - std::min(width, columns(out)), ' ');
}

class Text {
 public:
  explicit Text(const TableStyle& style) : style_(style) {}

  std::string bold(const std::string& s) const { return paint("1", s); }
  std::string dim(const std::string& s) const { return paint("2", s); }
  std::string good(const std::string& s) const { return paint("1;32", s); }
  std::string bad(const std::string& s) const { return paint("1;31", s); }
  std::string colour(int n, const std::string& s) const { return paint(fmt::format("38;5;{}", n), s); }

 private:
  std::string paint(const std::string& code, const std::string& s) const {
    return style_.colours && !s.empty() ? "\033[" + code + "m" + s + "\033[0m" : s;
  }
  const TableStyle& style_;
};

std::string bar(double share, int width) {
  static constexpr const char* eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int parts = static_cast<int>(std::max(0.0, std::min(1.0, share)) * width * 8 + 0.5);
  std::string out;
  for (int i = 0; i < parts / 8; ++i) out += "█";
  return out + eighths[parts % 8];
}

}  // namespace

std::string table(const Estimate& e, const TableStyle& style) {
  const Text t(style);
  const auto width = static_cast<std::size_t>(std::clamp(style.width, 60, 120));
  std::string out = t.bold(printable(e.model.name)) + "  " +
                    t.dim(fmt::format("{:.4g} M parameters · {}", static_cast<double>(e.model.parameters) / 1e6,
                                      printable(scenario_line(e), 300))) +
                    "\n\n";
  const auto figure = [&](const char* name, Bytes bytes, Bytes margin, const char* what) {
    const std::string plus = margin.count() > 0 ? "+ " + human(margin) : "";
    out += fmt::format("  {:<10} {}  {:<12} {}\n", name, t.bold(fmt::format("{:>10}", human(bytes))), plus, t.dim(what));
  };
  figure("allocated", e.peak_allocated, e.margin_allocated, "torch.cuda.max_memory_allocated()");
  figure("reserved", e.peak_reserved, e.margin_reserved, "torch.cuda.max_memory_reserved()");
  figure("device", e.peak_device, e.margin_device, "nvidia-smi: reserved, CUDA context and libraries");
  if (e.fits) {
    const Bytes total = e.scenario.device.total_bytes;
    const std::string card = e.scenario.device.name.empty() ? human(total)
                                                            : e.scenario.device.name + " (" + human(total) + ")";
    const Bytes need = e.peak_device + e.margin_device;
    out += "\n  " + (*e.fits ? t.good("fits") : t.bad("does not fit")) + " on " + printable(card) +
           (*e.fits ? ": " + human(total - need) + " to spare" : ": " + human(need - total) + " too much") + "\n";
  }
  out += "\n" + t.bold("at the peak") + t.dim(" (" + std::string(name_of(e.at.phase)) +
                                               (e.at.op.empty() ? "" : ", " + printable(e.at.op)) +
                                               (e.at.module.empty() ? "" : " in " + printable(e.at.module)) + ")") +
         "\n";
  int colour = 33;
  for (const CategoryRow& r : category_rows(e)) {
    out += fmt::format("  {:<34} {:>10}  {:>5.1f} %  {}\n", r.name, human(r.bytes), r.share * 100,
                       t.colour(colour, bar(r.share, static_cast<int>(width) - 62)));
    colour += 6;
  }
  const auto phases = phase_rows(e);
  if (!phases.empty()) {
    out += "\n" + t.bold(fmt::format("{:<36} {:>10}  {:>10}", "phase", "allocated", "reserved")) + "\n";
    for (const PhaseRow& p : phases)
      out += fmt::format("  {:<34} {:>10}  {:>10}\n", name_of(p.phase), human(p.allocated), human(p.reserved));
  }
  if (!e.largest.empty()) {
    out += "\n" + t.bold("largest tensors at the peak") + "\n";
    const std::size_t names = width - 40;
    for (std::size_t i = 0; i < std::min<std::size_t>(8, e.largest.size()); ++i) {
      const LiveTensor& l = e.largest[i];
      std::string category(name_of(l.category));
      std::replace(category.begin(), category.end(), '_', ' ');
      const std::string where = l.module.empty() ? l.name : l.op.empty() ? l.module : l.module + " " + l.op;
      out += fmt::format("  {:>10}  {:<22}  {}\n", human(l.bytes), category, fit(where.empty() ? l.name : where, names));
    }
  }
  const auto diagnostics = diagnostic_rows(e);
  if (!diagnostics.empty()) {
    out += "\n" + t.bold("assumed or not modelled") + "\n";
    for (const DiagnosticRow& d : diagnostics) {
      const std::string times = d.count > 1 ? fmt::format(" ({} times)", d.count) : "";
      const std::string bound =
          d.diagnostic.bound.count() > 0 ? ", up to " + human(d.diagnostic.bound) : std::string();
      out += "  " + printable(d.diagnostic.code) + ": " + printable(d.diagnostic.message, 400) + times + bound + "\n";
    }
  }
  return out;
}

}  // namespace headroom::report
