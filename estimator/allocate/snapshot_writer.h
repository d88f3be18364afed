// snapshot_pickle: a history as a file for PyTorch's memory viewer.
#pragma once

#include <string>
#include <vector>

#include "estimator/allocate/history.h"
#include "estimator/allocate/options.h"

namespace headroom {

/// Bytes of a pickle that `pickle.load`, torch.cuda._memory_viz and pytorch.org/memory_viz read as the result of
/// torch.cuda.memory._snapshot(). Taken from `history`: entries, segments, frames, stacks, device, alloc_conf; the two
/// must agree, since the viewer plays the entries backwards from the segments. `categories`: a word for each context
/// (index of a stack), by which the viewer colours; empty for none. Time is the entry's number: the same history gives
/// the same bytes.
std::string snapshot_pickle(const History& history, const AllocatorOptions& options,
                            const std::vector<std::string>& categories = {});

}  // namespace headroom
