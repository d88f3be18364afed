// Parts of every JSON that we print.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "estimator/base/diagnostic.h"

namespace headroom::report {

/// `schema_version` and `tool_version`, first.
nlohmann::ordered_json json_head();
nlohmann::ordered_json diagnostics_json(const Diagnostics& diagnostics);
/// Indented. Names come from files: broken UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::ordered_json& j);

}  // namespace headroom::report
