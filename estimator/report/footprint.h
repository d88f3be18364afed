// Footprints: what `diff` compares, of an estimate just made or saved.
#pragma once

#include <string>

#include "estimator/plan/difference.h"

namespace headroom::report {

Footprint footprint_of(const Estimate& e);

/// Of the JSON that `headroom estimate --format json` wrote, by this version or another of the same schema. Throws
/// Error(bad_input).
Footprint read_footprint(const std::string& path);

/// Whether the file begins as JSON does.
bool is_json(const std::string& path);

}  // namespace headroom::report
