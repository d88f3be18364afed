#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/text.h"
#include "estimator/report/replay_report.h"

namespace headroom::report {

std::string setting_name(const ReplayedSetting& s) {
  const std::string conf = s.alloc_conf.empty() ? "defaults" : s.alloc_conf;
  return s.as_recorded ? "recorded: " + conf : conf;
}

namespace {

constexpr std::size_t listed_leaks = 8;

/// The highest of each stretch, as a share of `top`.
std::vector<double> course(const std::vector<ReplayPoint>& points, std::int64_t ReplayPoint::*figure, std::int64_t top,
                           std::size_t width) {
  std::vector<double> out(std::min(width, points.size()));
  for (std::size_t i = 0; i < points.size(); ++i) {
    double& at = out[i * out.size() / points.size()];
    at = std::max(at, static_cast<double>(points[i].*figure) / static_cast<double>(std::max<std::int64_t>(1, top)));
  }
  return out;
}

std::string head(const ReplayAnswer& a, const Text& t) {
  std::string about = fmt::format("GPU {} · {} events · {} allocations", a.device, a.events, a.allocations);
  if (!a.torch_version.empty()) about += " · torch " + printable(a.torch_version);
  if (a.memory_fraction) about += fmt::format(" · memory fraction {:g}", *a.memory_fraction);
  if (a.initial.count() > 0) about += " · starts in the middle, with " + human(a.initial) + " reserved";
  return t.bold(printable(a.file)) + "  " + t.dim(about) + "\n\n";
}

/// The setting asked about: peaks, what is lost, the course.
std::string figures(const ReplayAnswer& a, const Text& t, std::size_t width) {
  const ReplayedSetting& s = a.asked();
  const ReplayResult& r = s.result;
  const auto row = [&](const char* name, std::int64_t bytes, const std::string& what) {
    return fmt::format("  {:<10} {}  {}\n", name, t.bold(fmt::format("{:>10}", human(Bytes(bytes)))), t.dim(what));
  };
  std::string out;
  if (!s.as_recorded)
    out = "under " + printable(setting_name(s), 400) +
          (a.memory ? ", with " + human(*a.memory) + " for the allocator (a CUDA context needs its own)" : "") + "\n\n";
  std::string at = fmt::format("peak at event {}", r.at_peak_allocated.entry);
  if (!s.peak_site.empty()) at += ": " + printable(s.peak_site);
  out += row("allocated", r.stats.allocated_bytes.all.peak, at);
  out += row("reserved", r.stats.reserved_bytes.all.peak, fmt::format("peak at event {}", r.at_peak_reserved.entry));
  out += row("unused", r.at_peak_reserved.reserved - r.at_peak_reserved.allocated,
             fmt::format("{:.1f} % of reserved when that was highest: cached or fragmented", r.fragmentation() * 100));
  const std::int64_t top = r.stats.reserved_bytes.all.peak;
  out +=
      "\n  allocated  " + t.colour(33, sparkline(course(r.timeline, &ReplayPoint::allocated, top, width - 16))) + "\n";
  out += "  reserved   " + t.colour(39, sparkline(course(r.timeline, &ReplayPoint::reserved, top, width - 16))) + "\n";
  return out;
}

std::string settings(const ReplayAnswer& a, const Text& t, std::size_t width) {
  const std::string in = a.memory ? "  in " + human(*a.memory) : "";
  std::size_t names = 7;
  for (const ReplayedSetting& s : a.settings) names = std::max(names, columns(printable(setting_name(s), 400)));
  names = std::min(names, width - 59 - (in.empty() ? 0 : 14));
  std::string out = "\n" +
                    t.bold(fmt::format("  {} {:>10}  {:>10}  {:>10}  {:>8}  {:>7}{}", fit("setting", names),
                                       "allocated", "reserved", "difference", "unused", "refused", in)) +
                    "\n";
  const std::int64_t base = a.settings[0].result.stats.reserved_bytes.all.peak;
  for (const ReplayedSetting& s : a.settings) {
    const MemoryStats& m = s.result.stats;
    const std::int64_t more = m.reserved_bytes.all.peak - base;
    out += fmt::format("  {} {:>10}  {:>10}  {:>10}  {:>6.1f} %  {:>7}", fit(setting_name(s), names),
                       human(Bytes(m.allocated_bytes.all.peak)), human(Bytes(m.reserved_bytes.all.peak)),
                       s.as_recorded ? "" : (more > 0 ? "+" : "") + human(Bytes(more)), s.result.fragmentation() * 100,
                       s.result.oom_events);
    if (s.fits) out += "  " + (*s.fits ? t.good("fits") : t.bad("does not fit"));
    out += "\n";
  }
  return out;
}

std::string refusals(const ReplayAnswer& a, const Text& t, std::size_t width) {
  const ReplayedSetting& s = a.asked();
  if (s.result.ooms.empty()) return {};
  const ReplayOom& first = s.result.ooms.front();
  return "\n" + t.bold("out of memory") +
         t.dim(fmt::format(" (event {}{}{}; the replay goes on after it)", first.entry,
                           s.refused_site.empty() ? "" : ", ", printable(s.refused_site))) +
         "\n" + wrapped(printable(first.oom.text, 1200), width, 2, "  ");
}

std::string leaks(const ReplayAnswer& a, const Text& t, std::size_t width) {
  if (a.leaks.empty()) return {};
  std::string out = "\n" + t.bold("what keeps growing") + t.dim(" (made again and again, alive at the end)") + "\n";
  for (std::size_t i = 0; i < std::min(listed_leaks, a.leaks.size()); ++i) {
    const LeakSite& l = a.leaks[i];
    const std::string site = l.call_site.empty() ? "blocks of " + human(Bytes(l.bytes_each)) : l.call_site;
    out += fmt::format("  {:>10}  {:>6} allocations  {}\n", human(Bytes(l.bytes)), l.count, clipped(site, width - 36));
  }
  return out;
}

std::string check(const ReplayAnswer& a, const Text& t) {
  if (!a.check) return {};
  const ReplayCheck& c = *a.check;
  std::string out =
      "\n" + t.bold("against the recording") + ": " + (a.check_passed ? t.good("equal") : t.bad("differs")) + "\n";
  const auto row = [&](const char* name, std::int64_t equal, std::int64_t all) {
    if (all > 0) out += fmt::format("  {:<16} {:>8} of {} equal\n", name, equal, all);
  };
  row("addresses", c.addresses_equal, c.addresses);
  row("segment events", c.segment_events_equal, c.segment_events);
  row("segments at end", c.segments_equal, c.segments);
  row("blocks at end", c.blocks_equal, c.blocks);
  row("refusals", c.oom_events, c.oom_events_recorded);
  for (const CheckedFigure& f : c.peaks)
    out += fmt::format("  {:<16} {:>10} recorded, {} replayed{}\n", "peak " + f.name, human(Bytes(f.recorded)),
                       human(Bytes(f.replayed)), f.recorded == f.replayed ? "" : " ✗");
  if (!c.first_difference.empty()) out += "  first difference: " + printable(c.first_difference, 400) + "\n";
  return out;
}

std::string table_of(const ReplayAnswer& a, const Text& t, std::size_t width) {
  std::string out = head(a, t) + figures(a, t, width) + settings(a, t, width) + refusals(a, t, width) +
                    leaks(a, t, width) + check(a, t);
  for (const Diagnostic& d : a.diagnostics)
    out += "\n" +
           t.dim(printable(d.code) + ": " + printable(d.message, 400) +
                 (d.bound.count() > 0 ? ", up to " + human(d.bound) : "")) +
           "\n";
  return out;
}

}  // namespace

std::string replay_table(const std::vector<ReplayAnswer>& answers, const TableStyle& style) {
  const Text t(style);
  const auto width = static_cast<std::size_t>(std::clamp(style.width, 80, 140));
  std::string out;
  for (const ReplayAnswer& a : answers) out += (out.empty() ? "" : "\n\n") + table_of(a, t, width);
  return out;
}

}  // namespace headroom::report
