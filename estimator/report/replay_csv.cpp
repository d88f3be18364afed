#include <fmt/format.h>

#include "estimator/report/escape.h"
#include "estimator/report/replay_report.h"

namespace headroom::report {

std::string replay_csv(const std::vector<ReplayAnswer>& answers) {
  std::string out =
      "file,history,device,alloc_conf,as_recorded,allocated_bytes,reserved_bytes,active_bytes,requested_bytes,"
      "fragmentation,retries,oom_events,fits\n";
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const ReplayAnswer& a = answers[i];
    for (const ReplayedSetting& s : a.settings) {
      const MemoryStats& m = s.result.stats;
      out += fmt::format("{},{},{},{},{},{},{},{},{},{:.6f},{},{},{}\n", csv_field(a.file), i, a.device,
                         csv_field(s.alloc_conf), s.as_recorded ? "yes" : "no", m.allocated_bytes.all.peak,
                         m.reserved_bytes.all.peak, m.active_bytes.all.peak, m.requested_bytes.all.peak,
                         s.result.fragmentation(), m.num_alloc_retries, s.result.oom_events,
                         s.fits ? (*s.fits ? "yes" : "no") : "");
    }
  }
  return out;
}

}  // namespace headroom::report
