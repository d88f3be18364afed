#include "calibration/runner/checkpoint.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <utility>

#include "estimator/base/error.h"

namespace headroom::runner {
namespace {

thread_local std::shared_ptr<CheckpointFrame> active_frame;

class Hooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit Hooks(std::shared_ptr<CheckpointFrame> frame) : frame_(std::move(frame)) {}

  void call_pack_hook(const at::Tensor& t) override {
    if (frame_->rerunning()) {
      rerun_ = t.detach();
      frame_->pack_rerun(rerun_);
    } else {
      number_ = frame_->pack_forward();
    }
  }
  at::Tensor call_unpack_hook() override { return rerun_.defined() ? rerun_ : frame_->unpack(number_); }

 private:
  std::shared_ptr<CheckpointFrame> frame_;
  std::size_t number_ = 0;
  at::Tensor rerun_;
};

/// The engine is where a SavedVariable asks for default hooks; those of Python hold Python objects.
class HookedEngine final : public torch::autograd::Engine {
 public:
  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return active_frame ? std::make_unique<Hooks>(active_frame) : nullptr;
  }
  static torch::autograd::Engine& instance() {
    static auto* engine = new HookedEngine;  // its threads outlive main
    return *engine;
  }
};

}  // namespace

void install_saved_tensor_hooks() { torch::autograd::set_default_engine_stub(&HookedEngine::instance); }

void CheckpointFrame::activate(std::shared_ptr<CheckpointFrame> frame) { active_frame = std::move(frame); }
const std::shared_ptr<CheckpointFrame>& CheckpointFrame::active() { return active_frame; }

CheckpointFrame::CheckpointFrame(std::vector<c10::IValue>& slots, Autocast& autocast, c10::Device device,
                                 const CheckpointSegment& segment)
    : slots_(slots),
      autocast_(autocast),
      device_(device),
      segment_(segment),
      autocast_state_(autocast.state()),
      random_state_(random_state(device)) {
  for (const SlotId s : segment.inputs) arguments_.push_back(slots[s.at()]);
}

void CheckpointFrame::pack_rerun(const at::Tensor& t) {
  stored_.push_back(t);
  if (stored_.size() == packed_) throw Stop{};
}

at::Tensor CheckpointFrame::unpack(std::size_t number) {
  if (!done_) rerun();
  if (number >= stored_.size() || !stored_[number].defined())
    throw Error(Exit::internal, "a checkpointed segment saved another number of tensors when it ran again");
  // Each one is handed out once: the frame does not keep it alive after its node took it.
  return std::exchange(stored_[number], at::Tensor());
}

void CheckpointFrame::rerun() {
  done_ = true;
  stored_.reserve(packed_);
  // The rerun has variables of its own.
  const auto take = [&](const Slots& slots) {
    std::vector<c10::IValue> held;
    for (const SlotId s : slots) held.push_back(std::exchange(slots_[s.at()], c10::IValue()));
    return held;
  };
  std::vector<c10::IValue> outer_inputs = take(segment_.inputs), outer_inner = take(segment_.inner);
  for (std::size_t i = 0; i < arguments_.size(); ++i) slots_[segment_.inputs[i].at()] = arguments_[i];

  const auto before = std::exchange(active_frame, shared_from_this());
  const auto autocast_before = autocast_.state();
  const at::Tensor random_before = random_state(device_);
  set_random_state(device_, random_state_);
  rerunning_ = true;
  {
    const c10::AutoGradMode grad(true);
    autocast_.enter(autocast_state_);
    try {
      segment_.rerun();
    } catch (const Stop&) {
    }
    for (const SlotId s : segment_.inner) slots_[s.at()] = c10::IValue();
    autocast_.leave(autocast_before);
  }
  rerunning_ = false;
  set_random_state(device_, random_before);
  active_frame = before;
  for (std::size_t i = 0; i < outer_inputs.size(); ++i) slots_[segment_.inputs[i].at()] = std::move(outer_inputs[i]);
  for (std::size_t i = 0; i < outer_inner.size(); ++i) slots_[segment_.inner[i].at()] = std::move(outer_inner[i]);
  arguments_.clear();
}

}  // namespace headroom::runner
