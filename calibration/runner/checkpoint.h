// torch.utils.checkpoint without Python, on the machine's slots. Not reentrant: saved tensors of a segment are replaced
// by numbers; the first one that backward asks for runs the segment again, which stores what it saves in the same order
// and stops right after the last one. Selective segments hand results of the first run to the rerun, below autograd.
// Reentrant: one node that runs the segment again and then backward through it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibration/runner/settings.h"
#include "estimator/step/machine.h"

namespace headroom::runner {

/// What a segment runs on.
struct CheckpointPlace {
  std::vector<c10::IValue>& slots;
  Autocast& autocast;
  c10::Device device;
};

/// The state in which a segment ran first.
struct SegmentState {
  explicit SegmentState(const CheckpointPlace& place)
      : autocast(place.autocast.state()), random(random_state(place.device)) {}

  Autocast::State autocast;
  at::Tensor random;
};

class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  /// Saves the segment's inputs; inside another segment they are saved tensors of that one.
  CheckpointFrame(CheckpointPlace place, const CheckpointSegment& segment);

  /// Saved tensors of this thread go through `frame` from now on; null: they are saved as they are. The one before.
  static std::shared_ptr<CheckpointFrame> activate(std::shared_ptr<CheckpointFrame> frame);
  static const std::shared_ptr<CheckpointFrame>& active();

  bool rerunning() const { return rerunning_; }
  std::size_t pack_forward() { return packed_++; }
  /// Throws Stop after the last one.
  void pack_rerun(const at::Tensor& t);
  at::Tensor unpack(std::size_t number);

  /// Selective: runs the operator, or hands out what the first run's call gave.
  bool keeps(const c10::OperatorHandle& op) const;
  void run_kept(const c10::OperatorHandle& op, torch::jit::Stack* stack);

  struct Stop {};

  std::shared_ptr<CheckpointFrame> outer;  ///< while this one packs: the segment around it

 private:
  struct Argument {
    c10::IValue value;                     ///< what is no tensor
    torch::autograd::SavedVariable saved;  ///< a tensor
  };
  struct Results {
    std::vector<std::vector<c10::IValue>> of_first_run;
    std::size_t taken = 0;  ///< by the rerun
  };
  void rerun();

  CheckpointPlace place_;
  CheckpointSegment segment_;
  SegmentState state_;
  std::vector<Argument> arguments_;  ///< as segment_.inputs; they live as long as a saved tensor's number does
  std::map<std::string, Results, std::less<>> kept_;
  std::size_t packed_ = 0;
  std::vector<at::Tensor> stored_;
  bool done_ = false;
  bool rerunning_ = false;
};

/// use_reentrant=True (torch.utils.checkpoint.CheckpointFunction), from before the segment's calls, which run without
/// gradients.
class ReentrantSegment {
 public:
  ReentrantSegment(CheckpointPlace place, const CheckpointSegment& segment);

  /// The calls have run: their results get one node, which owns `self` from here on.
  void close(const std::shared_ptr<ReentrantSegment>& self);

  /// Runs again with `inputs` (as the tensors among the segment's) and back; gradients of the inputs.
  std::vector<at::Tensor> run_back(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& grads);

 private:
  CheckpointPlace place_;
  CheckpointSegment segment_;
  SegmentState state_;
  std::vector<std::optional<c10::IValue>> values_;  ///< as segment_.inputs; none: a tensor
  std::vector<at::Tensor> inputs_;                  ///< the tensors, until the node has them
};

/// Lets PyTorch ask CheckpointFrame for each tensor it saves. Before the first backward.
void install_saved_tensor_hooks();

}  // namespace headroom::runner
