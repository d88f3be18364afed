// The forward pass on a machine, with checkpointed segments where the scenario asks for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "estimator/step/machine.h"

namespace headroom {

/// A stretch of consecutive calls that is checkpointed as one.
struct SegmentRange {
  std::size_t begin = 0, end = 0;  ///< calls [begin, end)
  bool reentrant = false;
  std::vector<std::string> save;  ///< selective checkpointing: operators whose results are kept
};

/// `--checkpoint blocks`: every module of the longest repeated lists (transformer blocks, residual stages): modules
/// whose path ends in a number and which have siblings of the same class. Of a list with several kinds of modules, the
/// commonest one that is made of modules.
std::vector<std::string> block_modules(const Program& program);

/// What the scenario checkpoints in this program, outer segments before the ones inside them. Throws Error(usage) when
/// a plan names what the program does not have.
std::vector<SegmentRange> checkpointed_ranges(const Program& program, const Scenario& scenario);

/// A forward pass: the program's calls in order, the segments entered and left around theirs. Values named in `drops`
/// go where Python lets them go. Machine and program must outlive it; the machine keeps no segment longer than its
/// graph.
class ForwardPass {
 public:
  /// `ranges`: in the order of checkpointed_ranges().
  ForwardPass(Machine& machine, const Program& program, std::vector<SegmentRange> ranges);
  ForwardPass(const ForwardPass&) = delete;
  ForwardPass& operator=(const ForwardPass&) = delete;

  void run();

 private:
  /// Calls [begin, end), with the segments from `segment` on that lie inside.
  void run(std::size_t begin, std::size_t end, std::size_t segment);
  void run_calls(std::size_t begin, std::size_t end);
  /// The call's arguments; what is only the dtype of a value that a rerun no longer holds is that dtype.
  std::span<const Arg> arguments(const Call& call);

  Machine& machine_;
  const Program& program_;
  std::vector<SegmentRange> ranges_;
  std::vector<CheckpointSegment> segments_;  ///< as ranges_
  std::vector<Slots> dtypes_of_;             ///< as ranges_: values from outside of which only the dtype is read
  std::unordered_map<std::uint32_t, DType> dtypes_;  ///< of those, by slot, as they were when a segment was entered
  std::vector<Arg> arguments_;  ///< of the call that is being made, where they differ from the program's
};

}  // namespace headroom
