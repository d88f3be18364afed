// The forward pass on a machine, with checkpointed segments where the scenario asks for them.
#pragma once

#include <string>
#include <vector>

#include "estimator/step/machine.h"

namespace headroom {

/// A stretch of consecutive calls that is checkpointed as one.
struct SegmentRange {
  std::size_t begin = 0, end = 0;  ///< calls [begin, end)
  bool reentrant = false;
};

/// `--checkpoint blocks`: every module of the longest repeated lists (transformer blocks, residual stages): modules
/// whose path ends in a number and which have siblings of the same class.
std::vector<std::string> block_modules(const Program& program);

/// The call ranges of the given modules (a module called twice gives two), in order; nested ones are left out.
std::vector<SegmentRange> segments_of_modules(const Program& program, const std::vector<std::string>& modules);

/// Runs the program's calls; values named in `drops` go where Python lets them go.
void run_forward(Machine& machine, const Program& program, const Scenario& scenario);
void run_forward(Machine& machine, const Program& program, const std::vector<SegmentRange>& segments);

}  // namespace headroom
