// Compare: a predicted step beside a recorded one, event by event. The tool that finds the rule that is wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/allocate/history.h"
#include "estimator/program/program.h"
#include "estimator/shadow/trace.h"

namespace headroom {

/// One alloc or free, with where it comes from.
struct ComparedEvent {
  bool alloc = true;
  std::int64_t bytes = 0;  ///< requested
  std::string site;        ///< predicted: operator, node, module; recorded: the innermost Python frame
};

/// A place where the two part: what only one of them has.
struct Difference {
  std::size_t predicted_at = 0, predicted_count = 0;
  std::size_t recorded_at = 0, recorded_count = 0;
};

struct Comparison {
  std::vector<ComparedEvent> predicted, recorded;
  std::size_t common = 0;                              ///< longest common subsequence of (kind, bytes)
  double share = 0;                                    ///< common over the longer list
  std::int64_t predicted_peak = 0, recorded_peak = 0;  ///< requested bytes above the first event's level
  std::vector<Difference> differences;                 ///< in order
};

/// Events of step `step` of a trace (the last one when -1): from its forward phase to its end.
std::vector<ComparedEvent> step_events(const shadow::Trace& trace, const Program& program, int step);
/// Allocs and frees (when the owner lets go) of a recorded history.
std::vector<ComparedEvent> recorded_events(const History& history);

Comparison compare(std::vector<ComparedEvent> predicted, std::vector<ComparedEvent> recorded);

/// The summary line and the first `shown` differences with their neighbourhood.
std::string describe(const Comparison& c, std::size_t shown);

}  // namespace headroom
