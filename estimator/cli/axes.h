// Axes: `--over batch=1,2,4:64` against the flag table. Any knob of the scenario is an axis.
#pragma once

#include <string>
#include <vector>

#include "estimator/cli/options.h"
#include "estimator/plan/sweep.h"
#include "estimator/read/graph.h"

namespace headroom::cli {

/// An axis, and how a value of it is given to the flag.
struct Axis {
  SweepAxis axis;
  const Flag* flag = nullptr;
  std::string prefix;  ///< "height=" of a dimension, which --dim takes

  void give(Options& o, std::size_t value) const;
};

/// The axes of --over in their order; repeated --gpu is one more. A name that is no flag's is that of a dimension of
/// `model`'s inputs. Throws Error(usage): unknown names, values that the flag does not take, too many cells.
std::vector<Axis> axes_of(const Options& o, const Model& model);

/// The question of a sweep over them: every cell with its scenario, or with why that is none.
Sweep sweep_of(const Options& o, const std::vector<Axis>& axes);

}  // namespace headroom::cli
