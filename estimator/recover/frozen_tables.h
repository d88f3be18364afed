// Parameters that transformers makes without requires_grad.
#pragma once

#include "estimator/recover/graph_view.h"
#include "estimator/recover/origins.h"

namespace headroom::recovery {

/// A table of sinusoidal positions (MarianSinusoidalPositionalEmbedding and those copied from it; Whisper's encoder):
/// by its class where the file names it, else by its name, its rows and what stands beside it.
bool is_sinusoid_table(const GraphView& g, const Origins& origins, ValueId weight);

}  // namespace headroom::recovery
