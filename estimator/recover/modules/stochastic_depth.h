// Stochastic depth: one small tensor of noise that scales a residual branch, in training only.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// torchvision's `torch.empty(size).bernoulli_(p).div_(p)` at node `last`, whose result is the noise.
void claim_noise(Recovery& r, NodeIndex last, Dims size, double keep);
/// Outside training these modules return their input: products with noise are seen through.
void plan_noise_in_eval(Recovery& r);

}  // namespace headroom::recovery
