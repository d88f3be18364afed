// Ladder: the changes that an experienced engineer tries, from what costs nothing to what changes the training.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "estimator/plan/estimate.h"

namespace headroom {

/// What a change costs: in words, and together as a number by which sets of changes are compared.
struct ChangeCost {
  std::string compute, accuracy, effort;
  int weight = 0;
};

/// One change of a scenario. Of a group at most one is made.
struct Rung {
  std::string key;    ///< "amp", "checkpoint"
  std::string group;  ///< "precision"
  std::string title;
  ChangeCost cost;
  std::vector<std::string> code;  ///< lines of PyTorch to change
  std::string reason;             ///< what of the estimate speaks for it; may be empty
  int level = 1;                  ///< within the group: a higher one is tried where a lower one is not enough
  std::function<Scenario(Scenario)> apply;
};

/// The question as it is put, and all that a rung may look at.
struct Question {
  const Scenario& scenario;
  const Estimate& estimate;
  const Stages& stages;
};

/// The rungs that change this question, in the order in which one tries them. The smaller micro-batches of group
/// "batch" keep the effective batch by accumulation; each divisor of the batch is a level.
std::vector<Rung> ladder(const Question& q);

/// What would help and is not simulated: said, without a figure.
struct Unmodelled {
  std::string key, title, what;
  Bytes acts_on;  ///< resident bytes that it divides or moves
};
std::vector<Unmodelled> unmodelled_changes(const Question& q);

}  // namespace headroom
