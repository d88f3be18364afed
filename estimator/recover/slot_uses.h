// SlotUses: which call of a program makes each slot, and which calls read it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "estimator/program/program.h"

namespace headroom::recovery {

/// Holds as long as no call is added, removed or given other arguments.
class SlotUses {
 public:
  explicit SlotUses(const Program& program);

  /// Index of the call that makes `s`; -1: it is a parameter or an input.
  std::int32_t maker(SlotId s) const { return maker_[s.at()]; }
  /// Indices of the calls that read `s`, in order, each once for every time it reads it.
  std::span<const std::int32_t> readers(SlotId s) const {
    const std::size_t first = first_[s.at()];
    return {readers_.data() + first, first_[s.at() + 1] - first};
  }
  std::size_t slot_count() const { return maker_.size(); }

 private:
  std::vector<std::int32_t> maker_;
  std::vector<std::size_t> first_;  ///< by slot: where its readers begin
  std::vector<std::int32_t> readers_;
};

}  // namespace headroom::recovery
