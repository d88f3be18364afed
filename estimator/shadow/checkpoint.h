// Non-reentrant activation checkpointing (torch/utils/checkpoint.py, use_reentrant=False): while a segment runs
// forward, saved tensors are replaced by holders; the first holder asked for runs the segment again, which stores what
// it saves in the same order and stops right after the last one.
#pragma once

#include <memory>
#include <vector>

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  CheckpointFrame(Shadow& m, const CheckpointSegment& segment);

  /// A saved tensor of the forward run: a number instead of the tensor.
  std::shared_ptr<struct CheckpointHolder> pack_forward();
  /// A saved tensor of the rerun, under its number. Throws Stop after the last one.
  void pack_rerun(Tensor t);
  /// The tensor with that number; runs the segment again when it has not been.
  Tensor unpack(Shadow& m, std::size_t number);

  bool rerunning() const { return rerunning_; }
  /// Thrown out of the rerun once everything that backward will ask for is stored.
  struct Stop {};

 private:
  void rerun(Shadow& m);

  CheckpointSegment segment_;
  std::vector<Value> arguments_;  ///< what segment_.inputs held
  DType autocast_;
  int autocast_suspended_;
  std::size_t packed_ = 0;      ///< by the forward run
  std::vector<Tensor> stored_;  ///< by the rerun
  bool done_ = false;
  bool rerunning_ = false;
};

struct CheckpointHolder {
  std::shared_ptr<CheckpointFrame> frame;
  std::size_t number = 0;
};

}  // namespace headroom::shadow
