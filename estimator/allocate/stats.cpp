#include "estimator/allocate/stats.h"

namespace headroom {

void MemoryStats::reset_peaks() {
  for (PoolStat* stat : {&allocation, &segment, &active, &inactive_split, &allocated_bytes, &reserved_bytes,
                         &active_bytes, &inactive_split_bytes, &requested_bytes}) {
    stat->reset_peak();
  }
  oversize_allocations.reset_peak();
  oversize_segments.reset_peak();
}

}  // namespace headroom
