// MemoryStats: torch.cuda.memory_stats().
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace headroom {

/// One counter with its running maximum, as in memory_stats: current, peak, allocated (all increases), freed (all
/// decreases).
struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;
  std::int64_t freed = 0;

  void increase(std::int64_t n) {
    current += n;
    allocated += n;
    peak = std::max(peak, current);
  }
  void decrease(std::int64_t n) {
    current -= n;
    freed += n;
  }
  void reset_peak() { peak = current; }

  friend bool operator==(const Stat&, const Stat&) = default;
};

/// A counter for all pools and for each of the two.
struct PoolStat {
  Stat all;
  Stat small_pool;
  Stat large_pool;

  void increase(bool small, std::int64_t n) {
    all.increase(n);
    (small ? small_pool : large_pool).increase(n);
  }
  void decrease(bool small, std::int64_t n) {
    all.decrease(n);
    (small ? small_pool : large_pool).decrease(n);
  }
  void reset_peak() {
    all.reset_peak();
    small_pool.reset_peak();
    large_pool.reset_peak();
  }

  friend bool operator==(const PoolStat&, const PoolStat&) = default;
};

/// Counters and bytes, named as in memory_stats. Bytes of blocks are whole blocks (rounded, or more when a block was
/// too small to split); `requested_bytes` are what was asked for.
struct MemoryStats {
  PoolStat allocation, segment, active, inactive_split;
  PoolStat allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
  Stat oversize_allocations, oversize_segments;
  std::int64_t num_alloc_retries = 0;
  std::int64_t num_ooms = 0;
  std::int64_t num_oom_rejections = 0;
  std::int64_t num_sync_all_streams = 0;
  std::int64_t num_device_alloc = 0;
  std::int64_t num_device_free = 0;

  /// torch.cuda.reset_peak_memory_stats().
  void reset_peaks();
};

}  // namespace headroom
