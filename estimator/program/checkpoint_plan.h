// CheckpointPlan: which stretches of the forward pass backward runs again. A value: what --checkpoint names, what a
// plan file holds, what the planner answers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headroom {

/// One torch.utils.checkpoint.checkpoint() call: of modules, or of a range of the Program's calls. Segments may lie
/// inside each other; they may not overlap otherwise.
struct PlannedSegment {
  std::vector<std::string> modules;  ///< one: each of its calls is a segment; more: one segment, first to last
  std::size_t begin = 0, end = 0;    ///< calls [begin, end) of the Program; of a segment without modules
  bool reentrant = false;            ///< use_reentrant=True
  std::vector<std::string> save;     ///< selective: operators whose results are kept ("aten::mm"), the rest runs again

  bool operator==(const PlannedSegment&) const = default;
};

struct CheckpointPlan {
  std::string source;     ///< as the user named it: a file, or module paths
  std::size_t calls = 0;  ///< of the Program that call ranges were made for; 0: not said
  std::vector<PlannedSegment> segments;

  bool operator==(const CheckpointPlan&) const = default;
};

}  // namespace headroom
