// nn.RNNBase keeps its weights in one buffer, so that cuDNN need not copy them at each call (flatten_parameters).
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "calibration/job/job.h"
#include "calibration/runner/dispatch.h"

namespace headroom::runner {

class RecurrentWeights {
 public:
  /// The recurrent modules of the job's programs.
  explicit RecurrentWeights(const Job& job);

  /// `slot` has got a tensor: once all weights of its module are there they are moved into one buffer, as the module's
  /// _apply does after .to().
  void made(SlotId slot, Dispatch& dispatch, const std::vector<c10::IValue>& slots) const;

 private:
  struct Module {
    Slots weights;
    std::vector<Arg> arguments;  ///< of aten::_cudnn_rnn_flatten_weight
  };
  std::vector<Module> modules_;
};

}  // namespace headroom::runner
