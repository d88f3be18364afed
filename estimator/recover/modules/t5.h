// What T5's modules do depending on dtypes or on tracing, which a float32 export does not show.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// DenseReluDense casts to the dtype of wo's weight before wo: a copy under autocast, nothing otherwise.
SlotId cast_before_linear(Recovery& r, SlotId x, const Arg& weight);

/// Whether `v` is looked up in the table of a relative position bias.
bool is_position_bias(const Recovery& r, ValueId v);

/// `where(causal mask, bias, min)` as transformers' SDPA makes it in each decoder layer when it does not trace
/// (integrations/sdpa_attention.py, create_position_bias_mask).
SlotId causal_bias(Recovery& r, ValueId bias);

/// `relative_buckets = 0; relative_buckets += …` and `positions + past_seen_tokens` of T5Attention: sums with a zero
/// that the exporters drop, and a last one that is in place.
void plan_position_buckets(Recovery& r);

}  // namespace headroom::recovery
