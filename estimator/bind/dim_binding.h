// Dim binding: every dimension of every graph input becomes a number.
#pragma once

#include "estimator/bind/shaped_graph.h"

namespace headroom {

/// Fills graph.inputs, graph.dims and the values of the main graph's inputs, and says in graph.diagnostics what was
/// assumed. Throws Error(usage) when a dim is not bound, a binding names nothing, or two contradict each other; its
/// hint is a command that would work. `graph.model` and `graph.values` must be set.
void bind_inputs(ShapedGraph& graph, const Bindings& bindings);

}  // namespace headroom
