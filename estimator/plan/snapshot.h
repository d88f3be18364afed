// snapshot: the predicted run as a PyTorch memory snapshot.
#pragma once

#include <string>

#include "estimator/plan/estimate.h"

namespace headroom {

/// Bytes of a pickle for torch.cuda._memory_viz and pytorch.org/memory_viz: the run that the estimate's figures are of,
/// every event with the ATen operator and node, then the module and the modules around it as frames, and with its
/// category. Throws Error(usage) for cudaMallocAsync, of which PyTorch takes no snapshot either.
std::string snapshot_of(const Stages& stages, const Scenario& scenario);

}  // namespace headroom
