#include "estimator/cli/plan_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom::cli {
namespace {

using nlohmann::json;

/// A plan is small: what is larger is something else.
constexpr std::streamoff largest_file = 64 << 20;

json parsed(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in)
    throw bad_input("--checkpoint: the plan file cannot be read", path,
                    "`headroom checkpoint MODEL --plan FILE` writes one");
  if (in.tellg() > largest_file) throw bad_input("--checkpoint: too large for a plan file", path);
  in.seekg(0);
  // Depth is bounded: a plan is an object of an array of objects of arrays.
  const auto shallow = [](int depth, json::parse_event_t, json&) {
    if (depth > 16) throw bad_input("nested too deeply");
    return true;
  };
  try {
    return json::parse(in, shallow);
  } catch (const json::exception& e) {
    throw bad_input("--checkpoint: the plan file is no JSON: " + printable(e.what(), 200), path);
  } catch (const Error& e) {
    throw bad_input(std::string("--checkpoint: no plan file: ") + e.what(), path);
  }
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  CheckpointPlan plan() {
    const json file = parsed(path_);
    if (!file.is_object() || !file.contains("segments")) throw wrong("plan files are objects with \"segments\"");
    if (file.value("schema_version", json(1)) != json(1)) throw wrong("schema_version is not 1");
    CheckpointPlan plan{.source = path_, .calls = file.contains("calls") ? number(file["calls"], "calls") : 0};
    const json& segments = file["segments"];
    if (!segments.is_array()) throw wrong("\"segments\" is no list");
    for (std::size_t i = 0; i < segments.size(); ++i) {
      at_ = "segments[" + std::to_string(i) + "]: ";
      plan.segments.push_back(segment(segments[i]));
    }
    return plan;
  }

 private:
  Error wrong(const std::string& what) const {
    return bad_input("--checkpoint: " + at_ + what, path_, "`headroom checkpoint --help` shows how a plan file looks");
  }

  std::size_t number(const json& j, const std::string& key) const {
    if (!j.is_number_unsigned()) throw wrong("\"" + key + "\" wants a whole number from 0 up");
    return j.get<std::size_t>();
  }

  std::vector<std::string> texts(const json& j, const std::string& key) const {
    if (!j.is_array()) throw wrong("\"" + key + "\" wants a list of names");
    std::vector<std::string> out;
    for (const json& one : j) {
      if (!one.is_string()) throw wrong("\"" + key + "\" wants a list of names");
      out.push_back(one.get<std::string>());
    }
    return out;
  }

  PlannedSegment segment(const json& j) const {
    if (!j.is_object()) throw wrong("a segment is an object");
    constexpr auto known =
        std::to_array<std::string_view>({"module", "modules", "calls", "reentrant", "save", "recompute", "why"});
    for (const auto& [key, value] : j.items())
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        const auto near = nearest(key, known);
        throw wrong("unknown key \"" + printable(key) + "\"" +
                    (near.empty() ? "" : ": did you mean \"" + std::string(near) + "\"?"));
      }
    if (j.contains("module") + j.contains("modules") + j.contains("calls") != 1)
      throw wrong("a segment has one of \"module\", \"modules\" and \"calls\"");
    PlannedSegment s;
    if (j.contains("calls")) {
      const json& range = j["calls"];
      if (!range.is_array() || range.size() != 2) throw wrong("\"calls\" wants [begin, end]");
      s.begin = number(range[0], "calls");
      s.end = number(range[1], "calls");
    } else if (j.contains("module")) {
      s.modules = texts(json::array({j["module"]}), "module");
    } else {
      s.modules = texts(j["modules"], "modules");
      if (s.modules.empty()) throw wrong("\"modules\" is empty");
    }
    if (j.contains("reentrant")) {
      if (!j["reentrant"].is_boolean()) throw wrong("\"reentrant\" wants true or false");
      s.reentrant = j["reentrant"].get<bool>();
    }
    if (j.contains("save"))
      for (const std::string& op : texts(j["save"], "save")) s.save.push_back(aten_name(op));
    if (s.reentrant && !s.save.empty()) throw wrong("\"save\" needs use_reentrant=False");
    return s;
  }

  /// "aten::mm" of "mm", "aten.mm.default" and "torch.ops.aten.mm.default".
  static std::string aten_name(std::string_view name) {
    if (name.starts_with("aten::")) return std::string(name);
    if (name.starts_with("torch.ops.")) name.remove_prefix(10);
    if (name.starts_with("aten.")) name.remove_prefix(5);
    if (name.ends_with(".default")) name.remove_suffix(8);
    return "aten::" + std::string(name);
  }

  const std::string& path_;
  std::string at_;
};

}  // namespace

CheckpointPlan read_plan_file(const std::string& path) { return Reader(path).plan(); }

CheckpointPlan plan_of_modules(std::string_view paths) {
  CheckpointPlan plan{.source = std::string(paths)};
  for (const auto path : split(paths, ','))
    if (const auto name = trim(path); !name.empty()) plan.segments.push_back({.modules = {std::string(name)}});
  if (plan.segments.empty())
    throw usage_error("--checkpoint wants none, blocks, a plan's PLAN.json, or module paths with commas between them");
  return plan;
}

}  // namespace headroom::cli
