#include "estimator/report/json_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "estimator/program/scenario_text.h"

namespace headroom::report {
namespace {

const char* name_of(Severity s) { return s == Severity::error ? "error" : s == Severity::warning ? "warning" : "info"; }

/// Writes what nlohmann::ordered_json::dump(2) writes, which goes through its text character by character.
class Writer {
 public:
  void value(const nlohmann::ordered_json& j, std::size_t indent = 0) {
    const auto element = [&](const nlohmann::ordered_json& e) { value(e, indent + 2); };
    const auto member = [&](const auto& m) {
      text(m.first);
      out_.append(": ", 2);
      element(m.second);
    };
    if (j.is_object())
      list(j.get_ref<const nlohmann::ordered_json::object_t&>(), '{', '}', indent, member);
    else if (j.is_array())
      list(j.get_ref<const nlohmann::ordered_json::array_t&>(), '[', ']', indent, element);
    else if (j.is_string())
      text(j.get_ref<const std::string&>());
    else if (j.is_number_integer() && !j.is_number_unsigned())
      out_ += std::to_string(j.get<std::int64_t>());
    else
      out_ += j.dump();
  }
  std::string take() { return std::move(out_); }

 private:
  template <class List, class Write>
  void list(const List& items, char open, char close, std::size_t indent, Write write) {
    out_ += open;
    for (const auto& item : items) {
      if (&item != &items.front()) out_ += ',';
      begin_line(indent + 2);
      write(item);
    }
    if (!items.empty()) begin_line(indent);
    out_ += close;
  }
  void begin_line(std::size_t indent) { (out_ += '\n').append(indent, ' '); }
  void text(const std::string& s) {
    const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
    if (std::ranges::all_of(s, plain))
      (out_ += '"').append(s) += '"';
    else
      out_ += nlohmann::ordered_json(s).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }

  std::string out_;
};

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
  Writer writer;
  writer.value(j);
  return writer.take() + "\n";
}

}  // namespace headroom::report
