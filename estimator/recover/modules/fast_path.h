// The fast path of torch.nn in inference: nn.MultiheadAttention and nn.TransformerEncoderLayer each as one fused call.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// Where the modules' forward takes it (torch/nn/modules/activation.py and transformer.py: eval mode, no gradients, no
/// autocast, batch first, an even number of heads, biases), for self-attention without a mask; no export shows it.
void take_fast_path(Recovery& r);

}  // namespace headroom::recovery
