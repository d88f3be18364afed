#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/text.h"
#include "estimator/report/figures.h"
#include "estimator/report/report.h"
#include "estimator/report/style.h"

namespace headroom::report {
namespace {

constexpr std::size_t shown_tensors = 8;
constexpr std::size_t shown_diagnostics = 8;
constexpr int bar_colours[] = {33, 38, 43, 79, 114, 150, 186, 216};

class Table {
 public:
  Table(const Estimate& e, const TableStyle& style)
      : e_(e), text_(style), width_(static_cast<std::size_t>(std::clamp(style.width, 60, 120))) {}

  std::string all() {
    heading();
    figures();
    fits();
    budget();
    categories();
    phases();
    steps();
    largest();
    diagnostics();
    return std::move(out_);
  }

 private:
  void heading() {
    out_ += text_.bold(clipped(e_.model.name, width_)) + "\n";
    const std::string what = fmt::format("{:.4g} M parameters · {}", static_cast<double>(e_.model.parameters) / 1e6,
                                         printable(scenario_line(e_), 300));
    out_ += text_.dim(wrapped(what, width_, 0, "")) + "\n";
  }

  void figures() {
    out_ += text_.dim(fmt::format("  {:<10} {:>10}   {}", "", "peak", "can be short by")) + "\n";
    const auto figure = [&](const char* name, Bytes bytes, Bytes margin, const char* what) {
      const std::string by = margin.count() > 0 ? human(margin) : "";
      out_ += fmt::format("  {:<10} {}   {:<15}", name, text_.bold(fmt::format("{:>10}", human(bytes))), by);
      if (width_ >= 78) out_ += "  " + text_.dim(what);
      out_ += "\n";
    };
    figure("allocated", e_.peak_allocated, e_.margin_allocated, "torch.cuda.max_memory_allocated()");
    figure("reserved", e_.peak_reserved, e_.margin_reserved, "torch.cuda.max_memory_reserved()");
    figure("device", e_.peak_device, e_.margin_device, "nvidia-smi: with the CUDA context");
  }

  void fits() {
    if (!e_.fits) return;
    const Bytes total = e_.scenario.device.total_bytes;
    const std::string card =
        e_.scenario.device.name.empty() ? human(total) : e_.scenario.device.name + " (" + human(total) + ")";
    const std::string verdict = *e_.fits ? "fits" : "does not fit";
    std::string line = wrapped(verdict + " on " + printable(card) + ": " +
                                   (e_.frees_cache ? "nothing to spare, some of the cache is freed to make room"
                                    : *e_.fits     ? human(e_.spare) + " to spare"
                                                   : human(Bytes() - e_.spare) + " too much"),
                               width_, 4, "  ");
    line.replace(2, verdict.size(), *e_.fits ? text_.good(verdict) : text_.bad(verdict));
    out_ += "\n" + line;
    if (e_.out_of_memory) {
      out_ +=
          wrapped(fmt::format("out of memory in step {}, {}", e_.oom_at.step, printable(place_line(e_.oom_at), 200)),
                  width_, 4, "  ");
      out_ += text_.dim(wrapped(printable(e_.oom_text, 1200), width_, 4, "    "));
    } else if (!*e_.fits) {
      out_ += text_.dim(wrapped("the peak alone has room; with what it can be short by it has not", width_, 4, "  "));
    }
  }

  void budget() {
    if (!e_.budget) return;
    const Bytes left = *e_.budget - e_.peak_device;
    out_ += (e_.fits ? "  " : "\n  ") + (e_.within_budget() ? text_.good("within") : text_.bad("over")) +
            " the budget of " + human(*e_.budget) + ": " +
            (e_.within_budget() ? human(left) + " left" : human(Bytes() - left) + " too much") + "\n";
  }

  void categories() {
    const std::string place = place_line(e_.at);
    out_ += "\n" + text_.bold("at the peak") + " " + text_.dim("(" + clipped(place, width_ - 14) + ")") + "\n";
    const int bars = static_cast<int>(width_) - 58;
    std::size_t i = 0;
    for (const CategoryRow& r : category_rows(e_)) {
      out_ += fmt::format("  {:<32} {:>10}  {:>5.1f} %", r.name, human(r.bytes), r.share * 100);
      const std::string drawn = bars > 5 ? bar(r.share, bars) : "";
      if (!drawn.empty()) out_ += "  " + text_.colour(bar_colours[i++ % std::size(bar_colours)], drawn);
      out_ += "\n";
    }
  }

  void phases() {
    const auto rows = phase_rows(e_);
    if (rows.empty()) return;
    out_ += "\n" + text_.bold(fmt::format("{:<34} {:>10}  {:>10}", "phase", "allocated", "reserved")) + "\n";
    for (const PhaseRow& p : rows)
      out_ += fmt::format("  {:<32} {:>10}  {:>10}\n", name_of(p.phase), human(p.allocated), human(p.reserved));
  }

  /// How the figures go from step to step, where the question is about many.
  void steps() {
    if (e_.scenario.steps == 0 && e_.scenario.sequences.empty()) return;
    const std::vector<StepRow> rows = step_rows(e_);
    if (rows.size() < 2) return;
    out_ += "\n" +
            text_.bold(fmt::format("{:<18} {:>10}  {:>10}  {:>10}", fmt::format("{} steps", rows.size()), "first",
                                   "highest", "last")) +
            "\n";
    const auto line = [&](const char* name, const auto& figure) {
      Bytes highest;
      for (const StepRow& r : rows) highest = std::max(highest, figure(r));
      std::vector<double> course(std::min(rows.size(), width_ - 56));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        double& at = course[i * course.size() / rows.size()];
        at = std::max(at, static_cast<double>(figure(rows[i]).count()) /
                              static_cast<double>(std::max<std::int64_t>(1, highest.count())));
      }
      out_ += fmt::format("  {:<16} {:>10}  {:>10}  {:>10}  {}\n", name, human(figure(rows.front())), human(highest),
                          human(figure(rows.back())), text_.colour(bar_colours[0], sparkline(course)));
    };
    line("allocated, peak", [](const StepRow& r) { return r.allocated_peak; });
    line("allocated, end", [](const StepRow& r) { return r.allocated_end; });
    line("reserved, end", [](const StepRow& r) { return r.reserved_end; });
    line("unused, end", [](const StepRow& r) { return r.reserved_end - r.allocated_end; });
    // The first step makes the optimizer's state: growth is counted from the second.
    if (rows.size() < 3 || !e_.scenario.sequences.empty()) return;
    const Bytes more = rows.back().allocated_end - rows[1].allocated_end;
    const auto times = static_cast<std::int64_t>(rows.size() - 2);
    if (more.count() > 0) out_ += "  grows by " + human(Bytes(more.count() / times)) + " a step\n";
  }

  void largest() {
    if (e_.largest.empty()) return;
    out_ += "\n" + text_.bold("largest tensors at the peak") + "\n";
    for (std::size_t i = 0; i < std::min(shown_tensors, e_.largest.size()); ++i) {
      const LiveTensor& l = e_.largest[i];
      std::string where = l.module.empty() ? l.name : l.module;
      if (!l.module.empty() && !l.op.empty()) where += " " + l.op;
      out_ += fmt::format("  {:>10}  {:<21}  {}\n", human(l.bytes), spaced(name_of(l.category)),
                          clipped(where, width_ - 37));
    }
  }

  void diagnostics() {
    const auto rows = diagnostic_rows(e_);
    if (rows.empty()) return;
    out_ += "\n" + text_.bold("assumed or not modelled") + "\n";
    for (std::size_t i = 0; i < std::min(shown_diagnostics, rows.size()); ++i) {
      const DiagnosticRow& d = rows[i];
      std::string what = printable(d.diagnostic.code) + ": " + printable(d.diagnostic.message, 400);
      if (d.count > 1) what += fmt::format(" ({} times)", d.count);
      if (d.diagnostic.bound.count() > 0) what += ", up to " + human(d.diagnostic.bound);
      out_ += wrapped(what, width_, 4, "  ");
    }
    if (rows.size() > shown_diagnostics)
      out_ += text_.dim(fmt::format("  and {} more: --format json has all", rows.size() - shown_diagnostics)) + "\n";
  }

  const Estimate& e_;
  Text text_;
  std::size_t width_;
  std::string out_;
};

}  // namespace

std::string table(const Estimate& e, const TableStyle& style) { return Table(e, style).all(); }

}  // namespace headroom::report
