// Rotary embedding: computes in float32 with autocast off, and gives cos and sin back in the stream's dtype.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// Puts in the casts that do nothing in float32, which the dynamo exporter leaves out.
void plan_rotary(Recovery& r);

}  // namespace headroom::recovery
