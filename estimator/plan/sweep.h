// Sweep: one model under every combination of some values of some knobs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/plan/estimator.h"

namespace headroom {

struct SweepAxis {
  std::string name;                 ///< of the flag or dimension: "batch", "precision", "height"
  std::vector<std::string> values;  ///< as the flag spells them
  bool numbers = false;             ///< values are whole numbers
};

/// One combination: its estimate, or why there is none.
struct SweepCell {
  Estimate estimate;  ///< `scenario` is the question; lists (phases, largest, diagnostics, margins) are left out
  std::optional<Error> error;
};

struct Sweep {
  std::string model;  ///< file name
  Scenario base;      ///< what all cells share
  std::vector<SweepAxis> axes;
  std::vector<SweepCell> cells;  ///< row-major: the last axis runs fastest
  Diagnostics diagnostics;       ///< about the question

  /// Index of cell `cell`'s value on each axis.
  std::vector<std::size_t> place(std::size_t cell) const;
};

struct SweepWork {
  std::size_t threads = 0;                                              ///< 0: one for each core
  std::function<void(std::size_t done)> progress = [](std::size_t) {};  ///< called from any thread
};

/// Answers every cell whose scenario stands in `sweep.cells` and that has no error yet. A cell that fails has its
/// error; the others are answered all the same. Cells of the same sizes, then of the same step, are run one after
/// another, whatever the order of the axes, so that they share what the estimator keeps.
void run_sweep(Estimator& estimator, Sweep& sweep, const SweepWork& work = {});

}  // namespace headroom
