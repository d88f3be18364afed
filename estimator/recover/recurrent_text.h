// nn.LSTM, nn.GRU and nn.RNN that the dynamo exporter kept whole: one fx node for all layers, one operator a layer.
#pragma once

#include "estimator/recover/fx_call.h"

namespace headroom::recovery {

/// Claims the group when its text is a recurrent network; false when it is something else.
bool claim_recurrent(Recovery& r, const FxCall& call);

}  // namespace headroom::recovery
