// Planner: where to checkpoint a model, every answer simulated as a whole.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/plan/checkpoint/module_ranges.h"
#include "estimator/plan/checkpoint/placement.h"
#include "estimator/plan/estimator.h"

namespace headroom {

/// A segment with what a person needs to apply it.
struct NamedSegment {
  SegmentRange range;
  std::vector<std::string> modules;  ///< that it is exactly, in order; empty: a stretch of one module's forward
  std::string in;                    ///< the module whose forward has its ends
  std::string first, last;           ///< values that its first and last call make
  std::vector<std::string> inputs, outputs;
};

/// A placement that was run on the shadow machine, with its allocator.
struct SimulatedPlacement {
  std::string name;  ///< "none", "every block", "square root", "selective", "planned"
  std::vector<NamedSegment> segments;
  Bytes allocated, reserved, device;
  double recomputed = 0;  ///< share of the work of forward and backward
  std::int64_t work = 0;
  std::optional<bool> fits;
  bool frees_cache = false;  ///< fits because the allocator frees what it had cached
  Bytes spare;
};

struct CheckpointQuestion {
  std::optional<double> most_recomputed;  ///< share of forward and backward
  bool any_cut = false;                   ///< segments may begin and end anywhere in a module's forward
};

struct CheckpointAnswer {
  Estimate base;  ///< without checkpoints
  std::size_t calls = 0;
  double forward_flops = 0, forward_bytes = 0;
  std::vector<SimulatedPlacement> baselines;  ///< none; where the model has blocks every block, square root, selective
  std::vector<SimulatedPlacement> front;      ///< planned, from the least recomputation to the lowest peak
  std::optional<SimulatedPlacement>
      chosen;  ///< what the budget or the bound asks for; absent: no question, or no answer
  bool asked = false;
  bool exact = true;
  std::size_t cuts = 0;
  std::size_t placements = 0;  ///< on the whole front
  bool dropout = false;        ///< segments of `chosen` draw random numbers
  bool batch_norm = false;     ///< they update running statistics, twice
};

/// With a card (scenario.device.total_bytes) the least recomputation that fits; with a bound the lowest peak within it.
/// The scenario's own checkpoints are not looked at. Throws Error.
CheckpointAnswer plan_checkpoints(Estimator& estimator, const Scenario& scenario, const CheckpointQuestion& question);

}  // namespace headroom
