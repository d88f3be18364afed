// Player: a script's steps on an allocator, with what is worth noting.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "estimator/allocate/replay.h"

namespace headroom {

class Player {
 public:
  /// Puts the script's initial state into `allocator`, which must be fresh: its segments as they were, or, when such
  /// segments cannot be under the allocator's settings, only what lived in them. Both must outlive the player.
  Player(const ReplayScript& script, Allocator& allocator, bool same_segments = true);

  /// Plays the step with this index; returns the block when it allocated one, else BlockId::null.
  BlockId play(std::size_t index);
  /// After the last step.
  ReplayResult finish();

 private:
  void allocate_initial();
  void free_later(const ReplayScript::Step& step);
  void complete(const ReplayScript::Step& step);
  ReplayPoint point(std::uint32_t entry) const;
  void note_peaks(std::uint32_t entry);
  void note_oom(const ReplayScript::Step& step, bool recorded);

  const ReplayScript& script_;
  Allocator& allocator_;
  std::vector<BlockId> handles_;  // by block number
  /// Blocks that wait for another stream, with the number of synchronisations when they began to.
  std::unordered_map<std::uint32_t, std::int64_t> waiting_since_;
  std::size_t stride_ = 1;
  ReplayResult result_;
};

}  // namespace headroom
