// Playback: a trace's events, one after the other, served by one allocator.
#pragma once

#include <vector>

#include "estimator/allocate/allocator.h"
#include "estimator/plan/timeline.h"

namespace headroom {

class Playback {
 public:
  explicit Playback(Allocator& allocator);

  /// Serves the trace's next event; `bytes` is the size of its block. False when that was refused.
  bool serve(const shadow::TraceEvent& event, Bytes bytes);
  /// The refused request ends the run.
  Timeline out_of_memory();
  /// It does not: whoever made it goes on without the block.
  void pass_over() { ++timeline_.refused_workspaces; }
  /// After the last event.
  Timeline finish();

 private:
  void close_phase();

  Allocator& allocator_;
  Timeline timeline_;
  std::vector<BlockId> handles_;  ///< by block
  std::size_t served_ = 0;
};

}  // namespace headroom
