// Reports of `headroom sweep`.
#pragma once

#include <string>
#include <vector>

#include "estimator/plan/metrics.h"
#include "estimator/plan/sweep.h"
#include "estimator/report/grid.h"

namespace headroom::report {

/// For people. One axis: a row for each value, a column for each metric. Several: a table for each metric, whose
/// columns are the values of the last axis.
GridDocument sweep_grids(const Sweep& sweep, const std::vector<const Metric*>& metrics);

/// `axes[]` with `name` and `values`; `cells[]` with `axes` (name: value), `peak`, `margin`, every metric, and `fits`
/// and `spare_bytes` where a card is named; or `error` instead.
std::string sweep_json(const Sweep& sweep);

/// A row for each cell: its value on each axis, every metric in bytes, whether it fits, the error.
std::string sweep_csv(const Sweep& sweep);

}  // namespace headroom::report
