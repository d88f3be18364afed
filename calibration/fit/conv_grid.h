// The designed grid of convolutions: what networks are made of, the likeliest first.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "calibration/job/job.h"

namespace headroom {

/// Endless, and the same each time.
class ConvGrid {
 public:
  ConvGrid();
  ConvProbe next();

 private:
  std::mt19937 random_{20261129};
  std::vector<ConvProbe> likeliest_;
  std::size_t given_ = 0, likely_given_ = 0;
};

}  // namespace headroom
