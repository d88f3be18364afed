// Portrait: what a process holds at a moment: tensors, storages, the graph behind them. Two moments with equal
// portraits go on in the same way.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/shadow/autograd.h"
#include "estimator/shadow/recorder.h"
#include "estimator/shadow/tensor.h"
#include "estimator/shadow/value.h"

namespace headroom::shadow {

class Portrait {
 public:
  /// `numbers`: how many objects earlier portraits of the process numbered.
  Portrait(const Recorder& recorder, std::uint64_t& numbers)
      : recorder_(&recorder), numbers_(&numbers), before_(numbers) {
    words_.reserve(2 * recorder.live_blocks());
  }

  void add(std::uint64_t word) { words_.push_back(word); }
  void add(const Value& v);
  void add(const Tensor& t);
  void add(const Ref<Storage>& s);
  void add(const Ref<Node>& n);
  /// Adds a variable that stays from step to step, without gradient or graph: which tensor it is, not what it is like.
  /// False when it is no such: weights, buffers and what the optimizer keeps are.
  bool add_lasting(const Value& v);
  /// What was added cannot be compared.
  void spoil() { complete_ = false; }
  /// Follows the graph to its end: call it last.
  void finish();

  /// Whether all live blocks are in it.
  bool complete() const { return complete_ && blocks_.size() + lasting_ == recorder_->live_blocks(); }
  /// The blocks but those of lasting tensors, in the order in which they were met.
  const std::vector<std::int32_t>& blocks() const { return blocks_; }
  /// Equal but for the blocks' numbers.
  bool equals(const Portrait& o) const { return words_ == o.words_ && blocks_.size() == o.blocks_.size(); }

 private:
  /// Numbers what is met for the first time; false when it was met before. The number is added.
  template <class T>
  bool first(T& object);
  bool lasts(const TensorImpl& t) const;

  const Recorder* recorder_;
  std::uint64_t* numbers_;  ///< the last number given; those up to before_ are other portraits'
  std::uint64_t before_;
  std::vector<std::uint64_t> words_;
  std::vector<std::int32_t> blocks_;
  std::size_t lasting_ = 0;   ///< blocks of lasting tensors
  std::vector<Node*> nodes_;  ///< met, in order; the first `followed_` of them were followed
  std::size_t followed_ = 0;
  bool complete_ = true;
};

}  // namespace headroom::shadow
