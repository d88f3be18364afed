// transformers' test for packed sequences: what runs in eager where the export builds a causal mask.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// An input that is an attention mask: by name, or a mask-shaped tensor of integers or booleans.
bool is_mask_input(const ShapedInput& input);

/// A causal mask made of position ranges was dropped: when not tracing, transformers compares neighbouring position ids
/// instead (masking_utils.find_packed_sequence_indices) and passes is_causal. Planned once, where the mask's first node
/// stands.
void plan_packed_sequence_test(Recovery& r, ValueId mask);

}  // namespace headroom::recovery
