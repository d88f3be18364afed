// Reports of `headroom check`: one line a scenario.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/plan/estimate.h"
#include "estimator/report/style.h"

namespace headroom::report {

/// A scenario of a repository, estimated.
struct CheckedScenario {
  std::string name;
  std::string model;  ///< path, as the config gives it
  std::optional<Estimate> estimate;
  std::optional<Error> error;  ///< why there is no estimate, or (--strict) why it does not count

  bool passed() const { return !error && estimate && estimate->holds(); }
};

std::string check_table(const std::vector<CheckedScenario>& scenarios, const TableStyle& style);
/// `scenarios[]` with `name`, `passed`, `peak`, `margin`, `budget_bytes`, `fits` or `error`; `passed` of all.
std::string check_json(const std::vector<CheckedScenario>& scenarios);
std::string check_csv(const std::vector<CheckedScenario>& scenarios);
std::string check_markdown(const std::vector<CheckedScenario>& scenarios);

}  // namespace headroom::report
