// failure: whatever was thrown, as the one Error that a person can read.
#pragma once

#include "estimator/base/error.h"

namespace headroom {

/// The exception that is being handled. Call it inside a catch block.
Error current_failure();

}  // namespace headroom
