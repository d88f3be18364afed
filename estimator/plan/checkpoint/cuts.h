// Cuts: calls in front of which a segment may begin or end.
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/plan/checkpoint/step_profile.h"

namespace headroom {

/// Ascending, the ends of the forward pass among them. All calls, or so many that at most `most_pairs` pairs have a
/// segment between them: of neighbours in one module's code goes the one at which most lives. O(calls) a round; every
/// round drops up to half of the cuts of one level.
std::vector<std::size_t> cuts_of(const StepProfile& profile, std::size_t most_pairs);

}  // namespace headroom
