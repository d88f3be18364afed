// Bloom's GELU: an autograd function of its own in training.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

void plan_bloom_gelus(Recovery& r);

}  // namespace headroom::recovery
