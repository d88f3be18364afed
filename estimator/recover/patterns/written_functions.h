// Functions of torch.nn.functional that the exporters write out, told by their shape: binary cross entropy of
// probabilities and of logits, smooth L1, Huber, cosine similarity, addcmul, the affine grid, alpha dropout.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// After plan_text: what the text says of the single operators is what the decomposition ran.
void plan_written_functions(Recovery& r);

}  // namespace headroom::recovery
