// The allocator's state before the first event of a history.
#pragma once

#include <vector>

#include "estimator/allocate/allocator.h"
#include "estimator/allocate/history.h"

namespace headroom {

struct InitialState {
  std::vector<SegmentRecord> segments;  ///< in address order
  std::int64_t contradictions = 0;      ///< events that did not fit the state they lead to
};

/// Undoes the events one by one, from the recorded end on.
InitialState initial_state(const History& history, const AllocatorOptions& options);

}  // namespace headroom
