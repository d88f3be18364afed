// torch.utils.checkpoint (use_reentrant=False) without Python: saved tensors of a segment are replaced by numbers; the
// first one that backward asks for runs the segment again, which stores what it saves in the same order and stops right
// after the last one.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <vector>

#include "calibration/runner/settings.h"
#include "estimator/step/machine.h"

namespace headroom::runner {

class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  CheckpointFrame(std::vector<c10::IValue>& slots, Autocast& autocast, c10::Device device,
                  const CheckpointSegment& segment);

  /// Saved tensors of this thread go through `frame` from now on; null: they are saved as they are.
  static void activate(std::shared_ptr<CheckpointFrame> frame);
  static const std::shared_ptr<CheckpointFrame>& active();

  bool rerunning() const { return rerunning_; }
  std::size_t pack_forward() { return packed_++; }
  /// Throws Stop after the last one.
  void pack_rerun(const at::Tensor& t);
  at::Tensor unpack(std::size_t number);

  struct Stop {};

 private:
  void rerun();

  std::vector<c10::IValue>& slots_;
  Autocast& autocast_;
  c10::Device device_;
  CheckpointSegment segment_;
  std::vector<c10::IValue> arguments_;
  Autocast::State autocast_state_;
  at::Tensor random_state_;
  std::size_t packed_ = 0;
  std::vector<at::Tensor> stored_;
  bool done_ = false;
  bool rerunning_ = false;
};

/// Lets PyTorch ask CheckpointFrame for each tensor it saves. Before the first backward.
void install_saved_tensor_hooks();

}  // namespace headroom::runner
