// read_json: JSON into plain data.
#pragma once

#include <string>
#include <string_view>

#include "estimator/allocate/plain_data.h"

namespace headroom {

/// Throws Error (bad input) with the place. Depth costs no stack.
PlainData read_json(std::string_view bytes, const std::string& file);

}  // namespace headroom
