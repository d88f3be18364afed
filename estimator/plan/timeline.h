// Timeline: a trace as one caching allocator served it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "estimator/allocate/allocator.h"
#include "estimator/shadow/trace.h"

namespace headroom {

/// Statistics of one phase of one step, as torch.cuda.memory_stats() gives them with the peaks reset at its start.
struct PhaseFigures {
  Phase phase = Phase::setup;
  int step = 0;
  Bytes allocated_peak, reserved_peak;
  Bytes allocated_end, reserved_end;
  Bytes requested_peak;
};

struct Timeline {
  std::vector<PhaseFigures> phases;
  Bytes allocated_peak;        ///< over all steps, without the setup
  Bytes reserved_peak;         ///< over the whole run: what the setup left in the cache counts
  std::size_t peak_event = 0;  ///< index of the event that reaches allocated_peak
  std::size_t peak_phase = 0;  ///< index into `phases`
  /// Workspaces of convolutions that were refused; the run goes on without them.
  std::size_t refused_workspaces = 0;
  bool out_of_memory = false;  ///< the allocator refused event `oom_event`; nothing after it was run
  std::size_t oom_event = 0;
  OutOfMemory oom;
  std::vector<SegmentRecord> segments;  ///< at the end
};

/// What the allocator did, with the caller's number for where each block comes from.
struct Recording {
  std::vector<std::int32_t> contexts;  ///< by block of the shadow trace
  Trace trace;                         ///< filled
};

/// Feeds the trace to the allocator. A refused request ends it, but for a convolution's workspace: there PyTorch tries
/// the next of cuDNN's plans (try_plans in ATen/native/cudnn/Conv_v8.cpp), and what that one takes is not known here:
/// nothing is counted. `recording` may be null.
Timeline run_timeline(const shadow::Trace& trace, Allocator& allocator, Recording* recording = nullptr);

/// A block that lives at the peak.
struct LiveBlock {
  std::int32_t block = 0;  ///< index into Trace::blocks
  Category category = Category::forward_temporaries;
};
/// What lives right after event `at`.
std::vector<LiveBlock> live_blocks(const shadow::Trace& trace, std::size_t at);

}  // namespace headroom
