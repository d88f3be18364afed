#include "estimator/plan/command.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "estimator/base/text.h"
#include "estimator/plan/cards.h"
#include "estimator/program/scenario_text.h"

namespace headroom {

namespace {

/// "rtx4090": the first alias that begins with a letter, else the name.
std::string short_name(const Card& c) {
  for (const std::string& alias : c.aliases)
    if (alias[0] < '0' || alias[0] > '9') return alias;
  return c.name;
}

}  // namespace

std::vector<std::string> flags_of(const Scenario& s) {
  std::map<std::string, std::string> defaults;
  for (auto& [name, value] : scenario_text({.task = s.task})) defaults[name] = value;
  defaults["task"] = "train";
  const Card* card = s.device.name.empty() ? nullptr : &card_named(s.device.name);
  std::vector<std::string> out;
  for (auto& [name, value] : scenario_text(s)) {
    const auto usual = defaults.find(name);
    if (usual != defaults.end() && usual->second == value) continue;
    if (name == "memory" && card && card->device.total_bytes == s.device.total_bytes) continue;
    if (name == "memory" && s.device.total_bytes.count() % GiB == 0)
      value = std::to_string(s.device.total_bytes.count() / GiB) + "GiB";
    if (name == "gpu" && card) value = short_name(*card);
    out.push_back("--" + name);
    if (value != "true") out.push_back(value);
  }
  return out;
}

ChangedFlags changed_flags(const Scenario& before, const Scenario& after) {
  ChangedFlags out;
  const std::vector<ScenarioText> old = scenario_text(before);
  for (auto& [name, value] : scenario_text(after)) {
    if (std::any_of(old.begin(), old.end(), [&](const auto& o) { return o.name == name && o.value == value; }))
      continue;
    (value == "false" ? out.leave_away : out.add).push_back("--" + name);
    if (value != "true" && value != "false") out.add.push_back(value);
  }
  // Only what is told when it is not the default is missing.
  for (auto& [name, value] : old)
    if (name == "leak" && after.leak == Leak::none) out.add.insert(out.add.end(), {"--leak", "none"});
  return out;
}

std::string command_text(const std::vector<std::string>& arguments) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=,+@%-";
  std::string out;
  for (const std::string& a : arguments) {
    if (!out.empty()) out += ' ';
    const std::string clean = printable(a, 400);
    if (!clean.empty() && clean.find_first_not_of(plain) == std::string::npos) {
      out += clean;
      continue;
    }
    out += '\'';
    for (const char c : clean) out += c == '\'' ? "'\\''" : std::string(1, c);
    out += '\'';
  }
  return out;
}

}  // namespace headroom
