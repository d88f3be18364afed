#include "estimator/shadow/steady.h"

#include <numeric>
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
  std::vector<std::int32_t> in_place_of(begin_.blocks);
  std::iota(in_place_of.begin(), in_place_of.end(), 0);
  for (std::size_t i = 0; i < now_.size(); ++i) in_place_of[static_cast<std::size_t>(before_->blocks()[i])] = now_[i];
  const std::vector<std::int32_t> own = recorder_.repeat_blocks(begin_, end_, step);
  in_place_of.insert(in_place_of.end(), own.begin(), own.end());
  const auto place = [&](std::int32_t block) { return in_place_of[static_cast<std::size_t>(block)]; };
  recorder_.repeat_events(begin_.events, end_.events, step, place);
  std::vector<std::int32_t> next;
  next.reserve(after_.size());
  for (const std::int32_t block : after_) next.push_back(place(block));
  now_ = std::move(next);
}

}  // namespace headroom::shadow
