// A Conv or ConvTranspose node as the call that Python makes.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// Output channels of a Conv or ConvTranspose node.
std::int64_t output_channels(const GraphView& graph, NodeIndex conv);

/// Calls conv{1,2,3}d or conv_transpose{1,2,3}d of the node with these operands. `bias` may be None. The result's name
/// is `name`; pads that differ at the two ends become a call of their own, as Python has to write them.
SlotId call_convolution(Recovery& r, NodeIndex conv, SlotId x, SlotId weight, Arg bias, std::string name);

}  // namespace headroom::recovery
