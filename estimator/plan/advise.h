// Advise: what to change so that a model fits, every step simulated.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/plan/estimator.h"
#include "estimator/plan/ladder.h"

namespace headroom {

/// A scenario with some of the changes made, and its figures.
struct ChangedRun {
  Scenario scenario;
  Bytes allocated, reserved, device;
  std::optional<bool> fits;
  Bytes spare;  ///< as in Estimate
};

struct AdviceStep {
  Rung rung;
  ChangedRun alone;     ///< this change only
  ChangedRun together;  ///< on top of the steps before that were kept
  bool kept = false;    ///< it saves something there, so the steps after it stand on it
};

struct LeftOut {
  std::string key, title, why;
};

/// Changes that were chosen, and the run with all of them.
struct ChangeSet {
  std::vector<Rung> rungs;
  ChangedRun run;
};

struct Advice {
  Estimate base;
  std::vector<AdviceStep> steps;
  std::vector<LeftOut> left_out;  ///< changes that this model cannot be run with
  std::vector<Unmodelled> unmodelled;
  std::optional<ChangedRun> validation;  ///< the forward alone under torch.no_grad(), in training
  /// With a card: the cheapest set that fits, empty where nothing has to change; where none fits the nearest one.
  std::optional<ChangeSet> chosen;

  bool fits() const { return !chosen || *chosen->run.fits; }
};

/// Walks the ladder. With a card in the scenario it then looks for the set of changes with the least cost that fits:
/// sets are simulated from the cheapest up, but for those that are part of a larger set that was seen not to fit.
/// Throws what the question itself throws.
Advice advise(Estimator& estimator, const Scenario& scenario);

}  // namespace headroom
