// nn.LSTMCell, nn.GRUCell and nn.RNNCell, which both exporters take apart.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

void plan_recurrent_cells(Recovery& r);

}  // namespace headroom::recovery
