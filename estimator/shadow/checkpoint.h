// Activation checkpointing as torch/utils/checkpoint.py does it. Not reentrant: while a segment runs forward, saved
// tensors are replaced by holders; the first holder asked for runs the segment again, which stores what it saves in the
// same order and stops right after the last one. Inputs of a segment inside another are saved tensors of the outer one.
// Reentrant: one node that runs the segment again and then backward through it.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

/// What a segment's run needs besides its arguments, restored for its rerun.
struct AutocastState {
  DType dtype = DType::undefined;
  int suspended = 0;
};

class CheckpointFrame : public std::enable_shared_from_this<CheckpointFrame> {
 public:
  /// Keeps the segment's inputs; under another segment they are saved tensors of that one.
  CheckpointFrame(Shadow& m, const CheckpointSegment& segment);

  /// A saved tensor of the forward run: a number instead of the tensor.
  std::shared_ptr<struct CheckpointHolder> pack_forward();
  /// A saved tensor of the rerun, under its number. Throws Stop after the last one.
  void pack_rerun(Tensor t);
  /// The tensor with that number; runs the segment again when it has not been.
  Tensor unpack(Shadow& m, std::size_t number);

  /// Selective checkpointing: the results of the operator's kernel, which the rerun takes from the forward run.
  bool keeps(const Shadow::Entry& e) const;
  Outputs kept(Shadow& m, const Shadow::Entry& e, std::span<const Value> args);

  bool rerunning() const { return rerunning_; }
  /// Thrown out of the rerun once everything that backward will ask for is stored.
  struct Stop {};

  std::shared_ptr<CheckpointFrame> outer;  ///< while this one packs: the segment around it

 private:
  struct Argument {
    Value value;          ///< what is no tensor of the device
    SavedVariable saved;  ///< a tensor
    bool needs_grad = false;
  };
  void rerun(Shadow& m);

  const CheckpointSegment& segment_;
  std::vector<Argument> arguments_;  ///< as segment_.inputs; they live as long as a holder does
  AutocastState autocast_;
  std::size_t packed_ = 0;      ///< by the forward run
  std::vector<Tensor> stored_;  ///< by the rerun
  bool done_ = false;
  bool rerunning_ = false;
  struct Results {
    std::vector<Outputs> of_forward;
    std::size_t taken = 0;  ///< by the rerun
  };
  std::unordered_map<const Shadow::Entry*, Results> kept_;
};

struct CheckpointHolder {
  std::shared_ptr<CheckpointFrame> frame;
  std::size_t number = 0;
};

/// CheckpointFunction (use_reentrant=True).
class ReentrantNode final : public Node {
 public:
  /// `m` is about to run the segment.
  ReentrantNode(Shadow& m, const CheckpointSegment& segment);

  std::string_view name() const override { return "CheckpointFunctionBackward"; }
  /// The segment has run: its results get this node, when an input needs a gradient.
  void take_results(Shadow& m);
  Gradients apply(Shadow& m, const Gradients& grads) override;
  void release() override { arguments_.clear(); }

 private:
  const CheckpointSegment& segment_;
  std::vector<Value> values_;             ///< as segment_.inputs: what is no tensor
  std::vector<SavedVariable> arguments_;  ///< as segment_.inputs; undefined where there is a value
  std::vector<char> needs_grad_;
  AutocastState autocast_;
};

}  // namespace headroom::shadow
