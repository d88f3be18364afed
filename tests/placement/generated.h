// Programs of random structure: chains with skips and diamonds.
#pragma once

#include <cstdint>

#include "estimator/program/program.h"

namespace headroom {

/// A model of `calls` calls or a few less; the same for the same seed. Values go after their last use, as temporaries
/// do. A batch of up to 64 `batch_times`: with many, what backward keeps outweighs the parameters.
Program generated_program(std::uint32_t seed, int calls, int batch_times = 1);

}  // namespace headroom
