// Verification: an estimate and a run of the same question, side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/measure/measurement.h"
#include "estimator/plan/estimate.h"
#include "estimator/plan/estimator.h"

namespace headroom {

/// The card that measured: as the table of cards knows it, else as the runner describes it.
Device card_of(const MeasuredDevice& measured);

/// Where the predicted and the measured events part first.
struct Parting {
  static constexpr int setup = -1;
  int step = 0;                     ///< or `setup`
  std::size_t event = 0;            ///< in both, counted from the step's begin
  std::string predicted, measured;  ///< "+1048576 aten::mm h.0.attn"; "" where that side has ended
};

/// The allocs and frees of a step, a line each: "+1048576 aten::mm h.0.attn".
struct StepEvents {
  int step = 0;
  std::vector<std::string> predicted, measured;
};

struct Verification {
  Estimate estimate;
  Measurement measured;
  std::optional<Parting> parting;  ///< none: not asked, or all the same
  StepEvents last_step;            ///< empty: not asked

  bool ran() const { return measured.outcome != Measurement::Outcome::failed; }
  /// Every figure that was measured lies within the estimate's margin; both end in OutOfMemoryError or neither does.
  bool holds() const;
};

/// How a verification is made.
struct VerifyOptions {
  Runner runner;
  Bytes memory;         ///< cap on the allocator; 0: none
  bool history = true;  ///< record events, to find where the two part
};

/// Runs first, since the run says what card there is, then estimates for that card. Throws Error: of the question, or
/// (environment) when the runner cannot be started; a run that fails is in the answer.
Verification verify(Estimator& estimator, const Scenario& scenario, const VerifyOptions& options);

struct LargestBatch {
  std::int64_t predicted = 0;  ///< 0: not even one
  std::int64_t measured = 0;
  std::vector<std::pair<std::int64_t, bool>> runs;  ///< batch, and whether it ran to its end; in order
};

/// The largest batch that the estimate lets fit, and the largest that runs. Throws Error(environment) when a run fails
/// for another reason than memory.
LargestBatch verify_largest_batch(Estimator& estimator, const Scenario& scenario, const VerifyOptions& options);

}  // namespace headroom
