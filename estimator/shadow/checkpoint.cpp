#include "estimator/shadow/checkpoint.h"

#include <utility>

namespace headroom::shadow {

CheckpointFrame::CheckpointFrame(Shadow& m, const CheckpointSegment& segment)
    : segment_(segment), autocast_(m.autocast_), autocast_suspended_(m.autocast_suspended_) {
  arguments_.reserve(segment.inputs.size());
  for (const SlotId s : segment.inputs) arguments_.push_back(m.slots_[s.at()]);
}

std::shared_ptr<CheckpointHolder> CheckpointFrame::pack_forward() {
  return std::make_shared<CheckpointHolder>(CheckpointHolder{shared_from_this(), packed_++});
}

void CheckpointFrame::pack_rerun(Tensor t) {
  stored_.push_back(std::move(t));
  if (stored_.size() == packed_) throw Stop{};
}

Tensor CheckpointFrame::unpack(Shadow& m, std::size_t number) {
  if (!done_) rerun(m);
  // Each one is handed out once and forgotten: the frame does not keep it alive after its node took it.
  return std::exchange(stored_[number], Tensor{});
}

void CheckpointFrame::rerun(Shadow& m) {
  done_ = true;
  rerunning_ = true;
  stored_.reserve(packed_);
  // The rerun has variables of its own.
  const auto scope = [&](const Slots& slots) {
    std::vector<Value> held;
    held.reserve(slots.size());
    for (const SlotId s : slots) held.push_back(std::exchange(m.slots_[s.at()], Value{}));
    return held;
  };
  std::vector<Value> outer_inputs = scope(segment_.inputs);
  std::vector<Value> outer_inner = scope(segment_.inner);
  for (std::size_t i = 0; i < arguments_.size(); ++i) m.slots_[segment_.inputs[i].at()] = arguments_[i];

  auto frame = std::exchange(m.checkpoint_, shared_from_this());
  const bool grad = std::exchange(m.grad_enabled_, true);
  const int below = std::exchange(m.below_autograd_, 0);
  const DType autocast = std::exchange(m.autocast_, autocast_);
  const int depth = std::exchange(m.autocast_depth_, autocast_ == DType::undefined ? 0 : 1);
  const int suspended = std::exchange(m.autocast_suspended_, autocast_suspended_);
  auto cache = std::exchange(m.cast_cache_, {});
  const auto module = m.recorder_.module;
  const auto site = m.recorder_.site;
  const auto op = m.recorder_.op;
  try {
    segment_.rerun();
  } catch (const Stop&) {
  }
  for (const SlotId s : segment_.inner) m.slots_[s.at()] = Value{};
  m.cast_cache_ = std::move(cache);
  m.autocast_suspended_ = suspended;
  m.autocast_depth_ = depth;
  m.autocast_ = autocast;
  m.below_autograd_ = below;
  m.grad_enabled_ = grad;
  m.checkpoint_ = std::move(frame);
  m.recorder_.module = module;
  m.recorder_.site = site;
  m.recorder_.op = op;
  for (std::size_t i = 0; i < outer_inputs.size(); ++i) m.slots_[segment_.inputs[i].at()] = std::move(outer_inputs[i]);
  for (std::size_t i = 0; i < outer_inner.size(); ++i) m.slots_[segment_.inner[i].at()] = std::move(outer_inner[i]);
  arguments_.clear();
  rerunning_ = false;
  stored_.resize(packed_);
}

}  // namespace headroom::shadow
