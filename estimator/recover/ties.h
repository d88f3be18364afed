// Tied weights: one tensor that an inference export stores twice, once transposed.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// Compares a few hundred bytes of each embedding with each anonymous matrix of the transposed shape. Without bytes the
/// family's habit decides, and a diagnostic bounds it.
void plan_tied_weights(Recovery& r);

}  // namespace headroom::recovery
