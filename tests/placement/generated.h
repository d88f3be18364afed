// Programs of random structure: chains with skips and diamonds.
#pragma once

#include <cstdint>

#include "estimator/program/program.h"

namespace headroom {

/// A model of `calls` calls or a few less; the same for the same seed. Values go after their last use, as temporaries
/// do.
Program generated_program(std::uint32_t seed, int calls);

}  // namespace headroom
