// Metrics: the figures of an estimate that a table can be made of.
#pragma once

#include <span>
#include <string_view>

#include "estimator/plan/estimate.h"

namespace headroom {

struct Metric {
  std::string_view name;  ///< "optimizer-state"
  std::string_view key;   ///< in CSV and JSON: "optimizer_state_bytes"
  std::string_view what;  ///< for people: "optimizer state at the peak"
  Bytes (*of)(const Estimate&);
};

/// All of them; the first three are the figures of the contract.
std::span<const Metric> metrics();

}  // namespace headroom
