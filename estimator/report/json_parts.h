// Parts of every JSON that we print.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "estimator/base/diagnostic.h"
#include "estimator/base/error.h"
#include "estimator/plan/estimate.h"

namespace headroom::report {

/// `schema_version` and `tool_version`, first.
nlohmann::ordered_json json_head();
nlohmann::ordered_json diagnostics_json(const Diagnostics& diagnostics);
/// Every knob by its flag's name; repeatable flags are lists.
nlohmann::ordered_json scenario_json(const Scenario& scenario);
/// `allocated_bytes`, `reserved_bytes`, `device_bytes`.
nlohmann::ordered_json peak_json(const Estimate& e);
nlohmann::ordered_json margin_json(const Estimate& e);
/// `what`, `where`, `hint`, `code` (the exit code that it would end the program with).
nlohmann::ordered_json error_json(const Error& error);
/// Indented. Names come from files: broken UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::ordered_json& j);

}  // namespace headroom::report
