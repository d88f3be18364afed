#include "estimator/report/json_parts.h"

#include <nlohmann/json.hpp>

#include "estimator/program/scenario_text.h"

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

nlohmann::ordered_json scenario_json(const Scenario& s) {
  auto j = nlohmann::ordered_json::object();
  for (const auto& [name, value] : scenario_text(s)) {
    // Repeatable flags are lists.
    if (name == "dim" || name == "shape" || name == "freeze")
      j[name].push_back(value);
    else
      j[name] = value;
  }
  return j;
}

nlohmann::ordered_json peak_json(const Estimate& e) {
  return {{"allocated_bytes", e.peak_allocated.count()},
          {"reserved_bytes", e.peak_reserved.count()},
          {"device_bytes", e.peak_device.count()}};
}

nlohmann::ordered_json margin_json(const Estimate& e) {
  return {{"allocated_bytes", e.margin_allocated.count()},
          {"reserved_bytes", e.margin_reserved.count()},
          {"device_bytes", e.margin_device.count()}};
}

nlohmann::ordered_json error_json(const Error& error) {
  return {{"what", error.what()},
          {"where", error.where()},
          {"hint", error.hint()},
          {"code", static_cast<int>(error.code())}};
}

std::string json_text(const nlohmann::ordered_json& j) {
  return j.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace headroom::report
