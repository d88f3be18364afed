// Config: headroom.toml, the scenarios of a repository and what each is held to.
#pragma once

#include <string>
#include <vector>

#include "estimator/cli/options.h"

namespace headroom::cli {

/// One [scenario.NAME]: the invocation of `headroom estimate` that it stands for.
struct ConfiguredScenario {
  std::string name;
  int line = 0;
  Options options;  ///< files[0] is the model, beside the config when it is relative
};

/// Reads `path`. The keys of a scenario are `model` and the long flags of `headroom estimate` (those for output apart);
/// [defaults] holds for every scenario. A repeatable flag is an array, --dim and --shape are tables, a switch is true.
/// In the file's order. Throws Error(bad_input) with the line, and a near miss for a misspelt key.
std::vector<ConfiguredScenario> read_config(const std::string& path);

}  // namespace headroom::cli
