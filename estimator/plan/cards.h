// Cards: models/gpus.json, compiled in. Every row names its source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/program/scenario.h"

namespace headroom {

struct CloudInstance {
  std::string provider, instance;
  int gpus = 1;
};

struct Card {
  std::string name;  ///< "h200"
  std::vector<std::string> aliases;
  Device device;
  bool estimated = false;  ///< total bytes are an estimate, not what CUDA was seen to report
  bool usual = false;      ///< among those that a question about cards is answered for when none is named
  std::string source;
  std::vector<CloudInstance> cloud;
};

/// All cards, in the file's order; parsed when first asked for.
const std::vector<Card>& cards();

/// By name or alias, case ignored, spaces and underscores as dashes. Throws Error(usage) with the nearest name.
const Card& card_named(std::string_view name);

}  // namespace headroom
