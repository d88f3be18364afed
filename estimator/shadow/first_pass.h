// FirstPass: forward, loss and backward of the first step, which the second step does again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "estimator/shadow/recorder.h"
#include "estimator/shadow/value.h"

namespace headroom::shadow {

/// What the second pass does otherwise: libraries have their workspaces, and results of the first pass go where those
/// of the second come (`out = model(x)`). It is repeated only where nothing else can differ: before both there are the
/// same variables without gradients; after them only gradients and results are new, and the graph holds nothing.
class FirstPass {
 public:
  /// The pass begins.
  FirstPass(Recorder& recorder, std::vector<Value>& variables);

  /// A variable is about to be bound.
  void binds(std::size_t variable) {
    if (variables_[variable].none()) bound_.push_back({variable, recorder_.mark().events});
  }
  /// The pass has ended; false when it cannot be repeated. `workspaces`: what the process keeps for good.
  bool end(std::span<const Ref<Storage>* const> workspaces);
  /// Appends the pass once more, as that of step `step`, with its gradients and results, once; false when what it found
  /// has changed.
  bool repeat(int step);

 private:
  /// One that was there before.
  struct Variable {
    std::size_t at;
    const TensorImpl* tensor;
    const Storage* storage;
  };
  struct Binding {
    std::size_t variable, event;  ///< before which it was bound
  };
  /// What the pass left behind: a variable's new value, or its tensor's gradient.
  struct Result {
    std::size_t variable;
    bool gradient;
    std::int32_t block;
    Bytes bytes;
    Tensor tensor;  ///< without its storage
  };

  bool as_before() const;
  bool own(std::int32_t block) const { return block >= static_cast<std::int32_t>(begin_.blocks); }
  bool adds(std::size_t variable, bool gradient, const Tensor& t);

  Recorder& recorder_;
  std::vector<Value>& variables_;
  Recorder::Mark begin_, end_{};
  std::size_t live_;  ///< blocks before
  bool began_plain_ = true;
  std::vector<Variable> before_;
  std::vector<Binding> bound_;
  std::vector<Result> results_;
  std::vector<std::int32_t> workspaces_;  ///< blocks
};

}  // namespace headroom::shadow
