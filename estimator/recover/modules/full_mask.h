// Masks that hide nothing: transformers builds them while it is exported, and leaves them away in a run.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// Attention written in Python adds no mask where all of it is true (masking_utils.create_bidirectional_mask): an
/// addition before a softmax whose mask is made of ones alone is left out.
void plan_full_masks(Recovery& r);

}  // namespace headroom::recovery
