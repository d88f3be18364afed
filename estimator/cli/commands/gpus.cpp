#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "estimator/base/text.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/plan/cards.h"

namespace headroom::cli {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

}  // namespace

int run_gpus(const Options& o) {
  std::string out;
  if (o.format == "json") {
    nlohmann::ordered_json j;
    j["schema_version"] = 1;
    for (const Card& c : cards()) {
      nlohmann::ordered_json cloud = nlohmann::ordered_json::array();
      for (const auto& i : c.cloud)
        cloud.push_back({{"provider", i.provider}, {"instance", i.instance}, {"gpus", i.gpus}});
      j["cards"].push_back(
          {{"name", c.name},
           {"aliases", c.aliases},
           {"total_bytes", c.device.total_bytes.count()},
           {"estimated", c.estimated},
           {"compute_capability", fmt::format("{}.{}", c.device.compute_major, c.device.compute_minor)},
           {"sm_count", c.device.sm_count},
           {"generation", c.device.generation},
           {"cloud", cloud},
           {"source", c.source}});
    }
    out = j.dump(2) + "\n";
  } else if (o.format == "csv") {
    out = "name,total_bytes,estimated,compute_capability,sm_count,generation\n";
    for (const Card& c : cards())
      out += fmt::format("{},{},{},{}.{},{},{}\n", c.name, c.device.total_bytes.count(), c.estimated ? "yes" : "no",
                         c.device.compute_major, c.device.compute_minor, c.device.sm_count, c.device.generation);
  } else {
    const bool md = o.format == "md";
    constexpr auto line = "{:<{}} {:>10}  {:<8} {:>4}  {:<12} {}\n";
    std::size_t names = 0;
    for (const Card& c : cards()) names = std::max(names, c.name.size());
    out = md ? "| name | memory | compute | SMs | generation | also |\n|---|---:|---|---:|---|---|\n"
             : fmt::format(line, "name", names, "memory", "compute", "SMs", "generation", "also");
    for (const Card& c : cards()) {
      const std::string memory = human(c.device.total_bytes) + (c.estimated ? " ~" : "");
      const std::string compute = fmt::format("{}.{}", c.device.compute_major, c.device.compute_minor);
      out += md ? fmt::format("| {} | {} | {} | {} | {} | {} |\n", c.name, memory, compute, c.device.sm_count,
                              c.device.generation, joined(c.aliases))
                : fmt::format(line, c.name, names, memory, compute, c.device.sm_count, c.device.generation,
                              joined(c.aliases));
    }
    if (!md) out += "~ estimated; sources: --format json\n";
  }
  write_result(out, o.output);
  return 0;
}

}  // namespace headroom::cli
