// nn.RNNBase keeps its weights in one buffer, so that cuDNN need not gather them at each call.
#pragma once

#include <unordered_map>
#include <vector>

#include "estimator/step/machine.h"

namespace headroom {

/// RNNBase.flatten_parameters(), which its _apply calls: after .to(device), and after a cast on the device. It does
/// nothing for dtypes that torch.backends.cudnn.is_acceptable() refuses: bfloat16 (torch/backends/cudnn/__init__.py).
class RecurrentWeights {
 public:
  /// The recurrent modules of the program.
  explicit RecurrentWeights(const Program& program);

  /// `slot` has got a new tensor; with the last weight of a module, its weights move into one buffer.
  void made(Machine& machine, SlotId slot, DType dtype);

 private:
  struct Module {
    std::size_t weights = 0, seen = 0;
    std::vector<Arg> arguments;  ///< of aten::_cudnn_rnn_flatten_weight
  };
  std::vector<Module> modules_;
  std::unordered_map<SlotId, std::size_t> module_of_;
};

}  // namespace headroom
