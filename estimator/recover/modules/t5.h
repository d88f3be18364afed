// What T5's modules do depending on dtypes, which a float32 export does not show.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// DenseReluDense casts to the dtype of wo's weight before wo: a copy under autocast, nothing otherwise.
SlotId cast_before_linear(Recovery& r, SlotId x, const Arg& weight);

}  // namespace headroom::recovery
