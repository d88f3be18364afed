// Command: a scenario as what one would type to ask for it.
#pragma once

#include <string>
#include <vector>

#include "estimator/program/scenario.h"

namespace headroom {

/// The arguments that make a scenario of the default one: {"--batch", "8", "--clip-grad"}.
std::vector<std::string> flags_of(const Scenario& s);

/// What makes `after` of `before`: arguments to add behind those of `before`, and switches to leave away.
struct ChangedFlags {
  std::vector<std::string> add, leave_away;
};
ChangedFlags changed_flags(const Scenario& before, const Scenario& after);

/// As one would type them: quoted for a shell where needed, harmless to print.
std::string command_text(const std::vector<std::string>& arguments);

}  // namespace headroom
