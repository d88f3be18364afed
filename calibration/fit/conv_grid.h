// The designed grid of convolutions: what networks are made of, in an order of which every beginning is a fair sample.
#pragma once

#include <random>

#include "calibration/job/job.h"

namespace headroom {

/// Endless, and the same each time.
class ConvGrid {
 public:
  ConvProbe next();

 private:
  std::mt19937 random_{20261129};
};

}  // namespace headroom
