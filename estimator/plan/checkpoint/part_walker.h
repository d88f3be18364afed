// PartWalker: what a part of the forward pass, kept or checkpointed, adds to the peaks of a placement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "estimator/plan/checkpoint/step_profile.h"

namespace headroom {

using Blocks = std::vector<std::int32_t>;  ///< sorted

/// What one part of the forward pass does to a prefix that ends in front of it.
struct Part {
  std::size_t end = 0;        ///< call
  std::int64_t forward = 0;   ///< most that lives while it runs, besides what only the prefix holds
  std::int64_t backward = 0;  ///< the same of its backward
  std::int64_t held = 0;      ///< what backward keeps and no variable does, when it ends
  std::int64_t late = 0;      ///< what backward keeps, and until the end of the forward pass autocast's cache as well
  std::int64_t work = 0;
  Blocks shared;  ///< what backward keeps and variables do too
};

/// Marks on blocks that are forgotten at once.
class Marks {
 public:
  explicit Marks(std::size_t blocks) : at_(blocks) {}
  void clear() { ++now_; }
  bool has(std::int32_t b) const { return at_[static_cast<std::size_t>(b)] == now_; }
  /// False when it was marked before.
  bool add(std::int32_t b) { return std::exchange(at_[static_cast<std::size_t>(b)], now_) != now_; }

 private:
  std::vector<std::uint32_t> at_;
  std::uint32_t now_ = 1;
};

/// Holds the profile.
class PartWalker {
 public:
  explicit PartWalker(const StepProfile& profile);

  /// Most that parts in front of the call can hold that counts in backward only.
  std::int64_t late_before(std::size_t call) const { return late_before_[call]; }

  /// [begin, end) without a checkpoint, after a prefix that holds `shared`.
  Part keep(std::size_t begin, std::size_t end, const Blocks& shared);

  /// Segments from `begin` on: those of `ends` (ascending) that make one. `keep`: index into the profile's keeps, whose
  /// results the rerun takes from the first run; none: everything runs again.
  std::vector<Part> checkpoint(std::size_t begin, std::span<const std::size_t> ends, const Blocks& shared,
                               std::optional<std::size_t> keep = {});

 private:
  const StepProfile::Block& block(std::int32_t b) const { return p_.blocks[static_cast<std::size_t>(b)]; }
  void start(const Blocks& shared);
  Blocks alive_at(std::size_t call, const Blocks& held) const;
  void find_late();

  const StepProfile& p_;
  std::vector<std::size_t> dies_;  ///< by block: event; the end when nothing in the forward pass ends it
  Marks before_, saved_, arguments_;
  std::int64_t before_bytes_ = 0;
  std::vector<std::vector<std::int64_t>> work_before_;  ///< by 1 + keep, by call: what runs again
  std::vector<std::int64_t> late_before_;               ///< by call
  std::vector<char> late_;
};

}  // namespace headroom
