// RMS norm written in Python: computes in float32 whatever the module's dtype, and goes back before the weight.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// The dynamo exporter drops casts that do nothing, the TorchScript exporter keeps some: puts the missing ones in.
void plan_rms_norms(Recovery& r);

}  // namespace headroom::recovery
