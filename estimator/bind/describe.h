// Text of a shaped graph, for `headroom inspect`.
#pragma once

#include <string>

#include "estimator/bind/shaped_graph.h"

namespace headroom {

/// The bound dims, the inputs, then a line for each output of each node that runs: name, dtype, dims, and the contents
/// of small known tensors. Bodies are indented. Names are made printable.
std::string describe(const ShapedGraph& graph);

/// "float32 [2, 64, 768]", "int64 [2] = {2, 64}", "sequence {...}"; "~" before dims that are a bound.
std::string describe(const ShapedValue& value);

}  // namespace headroom
