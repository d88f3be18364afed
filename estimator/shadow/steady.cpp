#include "estimator/shadow/steady.h"

#include <utility>

namespace headroom::shadow {

bool Steady::repeat(Portrait now, int step) {
  if (!now.complete()) {
    before_.reset();
    return false;
  }
  if (!before_ || !now.equals(*before_)) {
    before_ = std::move(now);
    begin_ = recorder_.mark();
    return false;
  }
  reached_ = true;
  end_ = recorder_.mark();
  after_ = now_ = now.blocks();
  repeat(step);
  return true;
}

void Steady::repeat(int step) {
  // Where the executed step began with a block, this one begins with the block at the same place of its portrait.
  std::vector<std::int32_t> in_place_of(begin_.blocks, -1);
  for (std::size_t i = 0; i < now_.size(); ++i) in_place_of[static_cast<std::size_t>(before_->blocks()[i])] = now_[i];
  const auto older = [&](std::int32_t block) { return in_place_of[static_cast<std::size_t>(block)]; };
  const std::int32_t first = recorder_.repeat(begin_, end_, step, older);
  const auto first_executed = static_cast<std::int32_t>(begin_.blocks);
  std::vector<std::int32_t> next;
  next.reserve(after_.size());
  for (const std::int32_t block : after_)
    next.push_back(block < first_executed ? older(block) : block - first_executed + first);
  now_ = std::move(next);
}

}  // namespace headroom::shadow
