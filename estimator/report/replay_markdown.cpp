#include <fmt/format.h>

#include "estimator/base/text.h"
#include "estimator/report/escape.h"
#include "estimator/report/replay_report.h"

namespace headroom::report {
namespace {

std::string markdown(const ReplayAnswer& a) {
  std::string out = fmt::format("### {}, GPU {}\n\n", markdown_text(a.file), a.device);
  out += fmt::format("{} events, {} allocations.\n\n", a.events, a.allocations);
  out += "| setting | allocated | reserved | fragmentation | retries | refused |";
  out += a.memory ? fmt::format(" in {} |\n", human(*a.memory)) : "\n";
  out += a.memory ? "|---|---:|---:|---:|---:|---:|---|\n" : "|---|---:|---:|---:|---:|---:|\n";
  for (const ReplayedSetting& s : a.settings) {
    const MemoryStats& m = s.result.stats;
    out += fmt::format("| {} | {} | {} | {:.1f} % | {} | {} |", markdown_text(setting_name(s)),
                       human(Bytes(m.allocated_bytes.all.peak)), human(Bytes(m.reserved_bytes.all.peak)),
                       s.result.fragmentation() * 100, m.num_alloc_retries, s.result.oom_events);
    if (a.memory) out += s.fits ? (*s.fits ? " fits |" : " **does not fit** |") : " |";
    out += "\n";
  }
  if (!a.leaks.empty()) {
    out += "\n| what keeps growing | bytes | allocations |\n|---|---:|---:|\n";
    for (const LeakSite& l : a.leaks)
      out += fmt::format("| {} | {} | {} |\n",
                         l.call_site.empty() ? "of " + human(Bytes(l.bytes_each)) : markdown_text(l.call_site),
                         human(Bytes(l.bytes)), l.count);
  }
  if (a.check)
    out += fmt::format("\nAgainst the recording: {}; {} of {} addresses equal, {} of {} refusals.\n",
                       a.check_passed ? "equal" : "**differs**", a.check->addresses_equal, a.check->addresses,
                       a.check->oom_events, a.check->oom_events_recorded);
  for (const Diagnostic& d : a.diagnostics)
    out += fmt::format("\n{}: {}\n", markdown_text(d.code), markdown_text(d.message));
  return out;
}

}  // namespace

std::string replay_markdown(const std::vector<ReplayAnswer>& answers) {
  std::string out;
  for (const ReplayAnswer& a : answers) out += (out.empty() ? "" : "\n") + markdown(a);
  return out;
}

}  // namespace headroom::report
