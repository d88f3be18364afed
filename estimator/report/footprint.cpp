#include "estimator/report/footprint.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "estimator/base/error.h"
#include "estimator/read/mapped_file.h"
#include "estimator/report/figures.h"

namespace headroom::report {
namespace {

using nlohmann::json;

constexpr std::size_t largest_file = 64 << 20;

Bytes bytes_of(const json& j, const char* key) { return Bytes(j.at(key).get<std::int64_t>()); }

/// Numbers that are no 64-bit integers would be converted in silence.
void demand_whole(const json& j) {
  for (const auto& [key, value] : j.items())
    if (value.is_number() && !value.is_number_integer()) throw bad_input("'" + key + "' is no whole number");
}

Footprint parsed(const json& j) {
  if (j.at("schema_version") != 1) throw bad_input("is of another schema version", "", "estimate it again");
  Footprint f;
  f.model = j.at("model").at("name");
  f.parameters = j.at("model").at("parameters");
  for (const auto& [name, value] : j.at("scenario").items())
    for (const json& one : value.is_array() ? value : json::array({value})) f.scenario.push_back({name, one});
  const json& peak = j.at("peak");
  demand_whole(peak);
  f.allocated = bytes_of(peak, "allocated_bytes");
  f.reserved = bytes_of(peak, "reserved_bytes");
  f.device = bytes_of(peak, "device_bytes");
  const json& at = peak.at("at");
  f.place = peak.at("phase");
  const std::string what = at.at("op").get<std::string>().empty() ? at.at("node") : at.at("op"), in = at.at("module");
  f.place += (what.empty() ? "" : ", " + what) + (in.empty() ? "" : " in " + in);
  demand_whole(j.at("categories"));
  for (const auto& [name, bytes] : j.at("categories").items())
    f.categories.push_back({name, Bytes(bytes.get<std::int64_t>())});
  for (const json& o : j.at("modules")) {
    demand_whole(o);
    f.owners.push_back({o.at("module"), o.at("category"), bytes_of(o, "bytes")});
  }
  return f;
}

}  // namespace

Footprint footprint_of(const Estimate& e) {
  Footprint f{.model = e.model.name,
              .parameters = e.model.parameters,
              .scenario = scenario_text(e.scenario),
              .allocated = e.peak_allocated,
              .reserved = e.peak_reserved,
              .device = e.peak_device,
              .place = place_line(e.at)};
  for (int c = 0; c < category_count; ++c)
    f.categories.push_back({std::string(name_of(static_cast<Category>(c))), e.categories[static_cast<std::size_t>(c)]});
  f.categories.push_back({"rounding", e.rounding});
  for (const OwnedBytes& o : e.owners) f.owners.push_back({o.module, std::string(name_of(o.category)), o.bytes});
  return f;
}

Footprint read_footprint(const std::string& path) {
  const MappedFile file(path);
  if (file.bytes().size() > largest_file) throw bad_input("is larger than 64 MiB", path);
  try {
    return parsed(json::parse(file.bytes()));
  } catch (const json::parse_error& e) {
    throw bad_input("is no JSON (byte " + std::to_string(e.byte) + ")", path);
  } catch (const json::exception&) {
    throw bad_input("is no saved estimate", path, "headroom estimate model.onnx --format json -o " + path);
  } catch (const Error& e) {
    throw bad_input(e.what(), path, e.hint());
  }
}

bool is_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  file >> std::ws;
  return file.peek() == '{';
}

}  // namespace headroom::report
