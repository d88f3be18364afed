// Which calls eager makes in place. Exports are functional: they have lost it.
#pragma once

#include "estimator/recover/recovery.h"
#include "estimator/recover/slot_uses.h"

namespace headroom::recovery {

/// Turns calls into their in-place forms: `x += y` by its source line; activations of the common convolutional
/// libraries after a norm or convolution; in files without lines, a batch norm's result that only one addition reads.
void find_in_place_calls(Recovery& r, const SlotUses& uses);

}  // namespace headroom::recovery
