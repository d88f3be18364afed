#include "estimator/report/json_parts.h"

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

const char* name_of(Severity s) { return s == Severity::error ? "error" : s == Severity::warning ? "warning" : "info"; }

}  // namespace

nlohmann::ordered_json json_head() { return {{"schema_version", 1}, {"tool_version", HEADROOM_VERSION}}; }

nlohmann::ordered_json diagnostics_json(const Diagnostics& diagnostics) {
  auto list = nlohmann::ordered_json::array();
  for (const Diagnostic& d : diagnostics)
    list.push_back({{"code", d.code},
                    {"severity", name_of(d.severity)},
                    {"node", d.node},
                    {"message", d.message},
                    {"bound_bytes", d.bound.count()}});
  return list;
}

std::string json_text(const nlohmann::ordered_json& j) {
  return j.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace headroom::report
