// One batch norm module: its call, its statistics, its counter.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

struct BatchNormOperands {
  SlotId weight, bias, mean, variance;
  double momentum = 0.1;
  double epsilon = 1e-5;
};

/// Calls batch_norm on `x` as nn.BatchNorm does in the mode asked for; in training the module's counter, which no
/// export holds, is restored and counted up first.
SlotId call_batch_norm(Recovery& r, SlotId x, const BatchNormOperands& operands, std::string name);

}  // namespace headroom::recovery
