// Placement: where checkpoints go. Every segmentation of the forward pass has a peak and an amount of work that is done
// twice; the front holds those that no other beats in both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "estimator/plan/checkpoint/step_profile.h"
#include "estimator/step/checkpoint.h"

namespace headroom {

struct Placement {
  std::int64_t peak = 0;  ///< bytes alive, each block rounded to the allocator's 512, without is_rerun_workspace()
  std::int64_t work = 0;  ///< recomputed, as call_cost.h has it
  std::vector<SegmentRange> segments;
};

struct PlacementFront {
  std::vector<Placement> placements;  ///< from no recomputation to the lowest peak
  bool exact = true;     ///< false: with autocast, or where cuts or points were left out to stay within time
  std::size_t cuts = 0;  ///< considered, the ends not counted
};

/// The whole front from one table: suffixes of the forward pass from the end, each with the least work for every peak.
/// What a prefix holds enters a suffix' peak as a sum, but for blocks that both hold: those are the table's states.
/// Segments begin and end where one module's code can: not in the middle of a module that the other end is outside of.
/// With `allowed`, of the segments [begin, end) for which it is true.
///
/// Lower sets that are prefixes of one order, as in Kusumoto et al. 2019 (arXiv 1905.11722), with labels in place of
/// slots of memory (label setting of the resource-constrained shortest path), so nothing is rounded. O(s p) for s
/// segments and p points of a front: s grows with the square of the cuts of one module's code, p is as many as there
/// are sums of what parts hold, few where layers repeat. Both are bounded; beyond that `exact` is false.
///
/// Segments for which `selective` is true may keep what one of the profile's lists keeps.
using SegmentFilter = std::function<bool(std::size_t begin, std::size_t end)>;
PlacementFront place_checkpoints(const StepProfile& profile, const SegmentFilter& allowed = {},
                                 const SegmentFilter& selective = {});

/// Of non-reentrant segments: each runs again up to its last save.
std::int64_t recomputed_work(const StepProfile& profile, const std::vector<SegmentRange>& segments);

/// Whether [begin, end) can be checkpointed: one module's code, inputs that nothing writes in place later, and
/// something saved inside; with `keep`, an index into the profile's keeps, something kept too.
bool can_be_segment(const StepProfile& profile, std::size_t begin, std::size_t end,
                    std::optional<std::size_t> keep = {});

}  // namespace headroom
