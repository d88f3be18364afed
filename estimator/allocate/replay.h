// Replay: a recorded history under the settings it was made with, or under others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/allocate/allocator.h"
#include "estimator/allocate/history.h"
#include "estimator/base/diagnostic.h"

namespace headroom {

/// What the program asked of its allocator, without what the allocator made of it: the same under any setting.
struct ReplayScript {
  enum class Kind : std::uint8_t {
    allocate,
    allocate_refused,  ///< the recording ran out of memory here; `bytes` is the rounded request
    free,
    free_later,  ///< freed while another stream uses it: completed by a `complete`
    complete,
    empty_cache,
    retire_pool,
  };
  struct Step {
    Kind kind = Kind::allocate;
    Stream stream = 0;
    PoolId pool = 0;
    std::uint32_t block = 0;  ///< number of the allocation, in order; the initial ones first
    std::uint32_t entry = 0;  ///< index in History::entries
    std::int64_t bytes = 0;
  };
  std::vector<Step> steps;
  std::uint32_t blocks = 0;
  /// The state before the first event, found by walking back from the last one; empty when the recording began with the
  /// process.
  std::vector<SegmentRecord> initial;
  /// The card as the recording knew it: its total where the file says so, else the peak that it reached when some
  /// allocation was refused; total 0 when nothing limited it.
  AllocatorDevice device;
  AllocatorOptions options;  ///< those of the recording
  /// "history-inconsistent" when events contradict the state they end in; "memory-fraction-inferred".
  Diagnostics diagnostics;
};

/// Throws Error when the history holds nothing to replay, or its allocator options cannot be read. `torch` decides how
/// they are read.
ReplayScript make_script(const History& history, TorchVersion torch = {});

struct ReplayConfig {
  AllocatorOptions options;
  AllocatorDevice device;
};
/// The settings of the recording, with its memory fraction and its card.
ReplayConfig recorded_config(const ReplayScript& script);
/// Other settings on the same card and fraction, or on one of `memory` bytes ("would it have fitted?"), all of which
/// the allocator may take.
ReplayConfig other_config(const ReplayScript& script, const AllocatorOptions& options,
                          std::optional<Bytes> memory = std::nullopt);

/// One moment. Bytes.
struct ReplayPoint {
  std::uint32_t entry = 0;  ///< index in History::entries
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
  std::int64_t active = 0;
  std::int64_t requested = 0;
  std::int64_t inactive_split = 0;
};

struct ReplayOom {
  std::uint32_t entry = 0;
  OutOfMemory oom;
  bool recorded = false;  ///< the recording ran out of memory here too
};

struct ReplayResult {
  MemoryStats stats;  ///< at the end; peaks over the whole history
  ReplayPoint at_peak_allocated;
  ReplayPoint at_peak_reserved;
  std::vector<ReplayPoint> timeline;  ///< at most 512 points, evenly over the events
  std::vector<ReplayOom> ooms;        ///< the first 100
  std::int64_t oom_events = 0;
  std::int64_t avoided_ooms = 0;  ///< refused in the recording, granted here
  std::vector<SegmentRecord> segments;
  Diagnostics diagnostics;  ///< the script's, and "async-reserved" with its bound for cudaMallocAsync

  /// Reserved and not allocated, as a share of reserved, when reserved was highest.
  double fragmentation() const;
};

/// Runs the script. Throws Error (usage) when `config` asks for a memory fraction and no card's size is known.
ReplayResult replay(const ReplayScript& script, const ReplayConfig& config);

/// One figure of the recording against the replay's.
struct CheckedFigure {
  std::string name;
  std::int64_t recorded = 0;
  std::int64_t replayed = 0;
};
struct ReplayCheck {
  std::int64_t addresses = 0;  ///< allocations whose address was compared
  std::int64_t addresses_equal = 0;
  std::int64_t segment_events = 0;  ///< segments made, freed, mapped, unmapped in the recording
  std::int64_t segment_events_equal = 0;
  std::int64_t segments = 0;  ///< at the end
  std::int64_t segments_equal = 0;
  std::int64_t blocks = 0;  ///< at the end, with size and state
  std::int64_t blocks_equal = 0;
  std::int64_t oom_events_recorded = 0;
  std::int64_t oom_events = 0;  ///< at the very same requests
  std::vector<CheckedFigure> peaks;
  std::string first_difference;  ///< empty when there is none

  bool all_equal() const;
};
/// Replays under the recorded settings, new segments where they were recorded, and compares everything.
struct CheckedReplay {
  ReplayResult result;
  ReplayCheck check;
};
CheckedReplay check_replay(const History& history, const ReplayScript& script);

/// Allocations of one place in the program (or, without frames, of one size) that outlive the loop they are made in.
struct LeakSite {
  std::string call_site;        ///< empty when the history has no Python frames
  std::int64_t bytes_each = 0;  ///< requested, of the last one
  std::int64_t count = 0;       ///< still alive at the end
  std::int64_t bytes = 0;       ///< requested, together
  double first = 0, last = 0;   ///< when the first and the last of them were made: 0 = start of history, 1 = end
};
/// The places whose survivors keep coming, largest first: made in at least three of sixteen equal spans of the history,
/// over at least half of it. Weights and optimizer state come once, activations die.
std::vector<LeakSite> find_leaks(const History& history, const ReplayScript& script, std::size_t most = 20);

}  // namespace headroom
