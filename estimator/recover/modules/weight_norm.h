// torch.nn.utils.weight_norm and its parametrization: one kernel makes the weight of a direction and of lengths.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// Both exporters write the kernel out: a norm, a division and a product.
void plan_weight_norms(Recovery& r);

}  // namespace headroom::recovery
