// One batch norm module: its call, its statistics, its counter.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

struct BatchNormOperands {
  SlotId weight, bias, mean, variance;
  double momentum = 0.1;
  double epsilon = 1e-5;
};

/// The node's weight (1) or bias (2) is a vector that the exporter makes in place of None.
bool affine_is_none(const Recovery& r, NodeIndex norm, std::size_t input);

/// Calls batch_norm on `x` as nn.BatchNorm does in the mode asked for; in training the module's counter, which no
/// export holds, is restored and counted up first.
SlotId call_batch_norm(Recovery& r, SlotId x, const BatchNormOperands& operands, std::string name);

}  // namespace headroom::recovery
