// ScenarioText: a scenario as the flags that ask for it.
#pragma once

#include <string>
#include <vector>

#include "estimator/program/scenario.h"

namespace headroom {

struct ScenarioText {
  std::string name, value;  ///< "precision", "amp-bf16"
};
/// Every knob, defaults too; switches are "true" and "false", repeatable flags come once for each.
std::vector<ScenarioText> scenario_text(const Scenario& s);

}  // namespace headroom
