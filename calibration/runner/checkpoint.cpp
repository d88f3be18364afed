#include "calibration/runner/checkpoint.h"

#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

#include "estimator/base/error.h"

namespace headroom::runner {
namespace {

/// A key below autograd that PyTorch leaves to other projects (c10/core/DispatchKey.h: torchdistx); no kernel of its
/// own answers there.
constexpr auto selective_key = c10::DispatchKey::Fake;

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

/// Every operator below autograd, while a selective segment is active.
void run_selective(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard inside(selective_key);
  if (active_frame && active_frame->keeps(op))
    active_frame->run_kept(op, stack);
  else
    op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(_, Fake, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_selective>()); }

/// A segment's rerun: variables of its own, with gradients, in the state of its first run. What stood before stands
/// again when this goes.
class RerunScope {
 public:
  RerunScope(CheckpointPlace place, const CheckpointSegment& segment, const SegmentState& state,
             std::shared_ptr<CheckpointFrame> frame)
      : place_(place),
        segment_(segment),
        inputs_(taken(segment.inputs)),
        inner_(taken(segment.inner)),
        frame_(CheckpointFrame::activate(std::move(frame))),
        before_(place),
        grad_(true) {
    set_random_state(place.device, state.random);
    place.autocast.enter(state.autocast);
  }
  ~RerunScope() {
    for (const SlotId s : segment_.inner) place_.slots[s.at()] = c10::IValue();
    place_.autocast.leave(before_.autocast);
    set_random_state(place_.device, before_.random);
    CheckpointFrame::activate(std::move(frame_));
    for (std::size_t i = 0; i < inputs_.size(); ++i) place_.slots[segment_.inputs[i].at()] = std::move(inputs_[i]);
    for (std::size_t i = 0; i < inner_.size(); ++i) place_.slots[segment_.inner[i].at()] = std::move(inner_[i]);
  }
  RerunScope(const RerunScope&) = delete;
  RerunScope& operator=(const RerunScope&) = delete;

 private:
  std::vector<c10::IValue> taken(const Slots& slots) {
    std::vector<c10::IValue> held;
    for (const SlotId s : slots) held.push_back(std::exchange(place_.slots[s.at()], c10::IValue()));
    return held;
  }

  CheckpointPlace place_;
  const CheckpointSegment& segment_;
  std::vector<c10::IValue> inputs_, inner_;
  std::shared_ptr<CheckpointFrame> frame_;
  SegmentState before_;
  c10::AutoGradMode grad_;
};

/// The node of a segment that has run.
class Reentrant final : public torch::autograd::Function<Reentrant> {
 public:
  struct Owner : torch::CustomClassHolder {
    explicit Owner(std::shared_ptr<ReentrantSegment> s) : segment(std::move(s)) {}
    std::shared_ptr<ReentrantSegment> segment;
  };

  /// Only what is a TensorList has gradients.
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* ctx,
                                                const std::shared_ptr<ReentrantSegment>& segment, at::TensorList inputs,
                                                const torch::autograd::variable_list& results) {
    ctx->saved_data["owner"] = c10::IValue::make_capsule(c10::make_intrusive<Owner>(segment));
    ctx->save_for_backward(inputs.vec());
    ctx->set_materialize_grads(false);
    return results;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto owner = c10::static_intrusive_pointer_cast<Owner>(ctx->saved_data["owner"].toCapsule());
    torch::autograd::variable_list out(1);  // one for each argument of forward
    for (at::Tensor& grad : owner->segment->run_back(ctx->get_saved_variables(), grads)) out.push_back(std::move(grad));
    out.emplace_back();
    return out;
  }
};

}  // namespace

void install_saved_tensor_hooks() { torch::autograd::set_default_engine_stub(&HookedEngine::instance); }

std::shared_ptr<CheckpointFrame> CheckpointFrame::activate(std::shared_ptr<CheckpointFrame> frame) {
  c10::impl::tls_set_dispatch_key_included(selective_key, frame && !frame->segment_.save.empty());
  return std::exchange(active_frame, std::move(frame));
}
const std::shared_ptr<CheckpointFrame>& CheckpointFrame::active() { return active_frame; }

CheckpointFrame::CheckpointFrame(CheckpointPlace place, const CheckpointSegment& segment)
    : place_(place), segment_(segment), state_(place) {
  for (const SlotId s : segment.inputs) {
    const c10::IValue& v = place.slots[s.at()];
    Argument& a = arguments_.emplace_back();
    if (v.isTensor() && v.toTensor().defined())
      a.saved = torch::autograd::SavedVariable(v.toTensor(), false);
    else
      a.value = v;
  }
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
  // A segment inside another gets its inputs from the other's rerun.
  std::vector<c10::IValue> arguments;
  for (const Argument& a : arguments_) {
    const at::Tensor saved = a.saved.unpack();
    arguments.push_back(saved.defined() ? c10::IValue(saved) : a.value);
  }
  rerunning_ = true;
  {
    const RerunScope scope(place_, segment_, state_, shared_from_this());
    for (std::size_t i = 0; i < arguments.size(); ++i) place_.slots[segment_.inputs[i].at()] = std::move(arguments[i]);
    try {
      segment_.rerun();
    } catch (const Stop&) {
    }
  }
  rerunning_ = false;
}

bool CheckpointFrame::keeps(const c10::OperatorHandle& op) const {
  return std::ranges::find(segment_.save, c10::toString(op.operator_name())) != segment_.save.end();
}

void CheckpointFrame::run_kept(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Results& results = kept_[c10::toString(op.operator_name())];
  if (rerunning_) {
    torch::jit::drop(*stack, op.schema().arguments().size());
    for (c10::IValue& v : std::exchange(results.of_first_run.at(results.taken++), {})) stack->push_back(std::move(v));
    return;
  }
  op.callBoxed(stack);
  std::vector<c10::IValue>& copies = results.of_first_run.emplace_back();
  for (const c10::IValue& v : torch::jit::last(*stack, op.schema().returns().size()))
    copies.push_back(v.isTensor() && v.toTensor().defined() ? c10::IValue(v.toTensor().detach()) : v);
}

ReentrantSegment::ReentrantSegment(CheckpointPlace place, const CheckpointSegment& segment)
    : place_(place), segment_(segment), state_(place) {
  for (const SlotId s : segment.inputs) {
    const c10::IValue& v = place.slots[s.at()];
    const bool tensor = v.isTensor() && v.toTensor().defined();
    if (tensor) inputs_.push_back(v.toTensor());
    values_.push_back(tensor ? std::nullopt : std::optional(v));
  }
}

void ReentrantSegment::close(const std::shared_ptr<ReentrantSegment>& self) {
  torch::autograd::variable_list results;
  for (const SlotId s : segment_.outputs) {
    c10::IValue v = std::exchange(place_.slots[s.at()], c10::IValue());
    results.push_back(v.isTensor() ? std::move(v).toTensor() : at::Tensor());
  }
  const auto inputs = std::exchange(inputs_, {});
  const auto made = Reentrant::apply(self, at::TensorList(inputs), std::move(results));
  for (std::size_t i = 0; i < made.size(); ++i)
    if (made[i].defined()) place_.slots[segment_.outputs[i].at()] = made[i];
}

std::vector<at::Tensor> ReentrantSegment::run_back(const std::vector<at::Tensor>& inputs,
                                                   const std::vector<at::Tensor>& grads) {
  torch::autograd::variable_list leaves, roots, root_grads;
  {
    const RerunScope scope(place_, segment_, state_, nullptr);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      c10::IValue& slot = place_.slots[segment_.inputs[i].at()];
      if (values_[i]) {
        slot = *values_[i];
        continue;
      }
      const at::Tensor& input = inputs.at(leaves.size());
      leaves.push_back(input.detach().set_requires_grad(input.requires_grad()));
      slot = leaves.back();
    }
    segment_.rerun();
    for (std::size_t i = 0; i < segment_.outputs.size() && i < grads.size(); ++i) {
      const c10::IValue& result = place_.slots[segment_.outputs[i].at()];
      if (!grads[i].defined() || !result.isTensor() || !result.toTensor().requires_grad()) continue;
      roots.push_back(result.toTensor());
      root_grads.push_back(grads[i]);
    }
  }
  torch::autograd::backward(roots, root_grads);
  for (at::Tensor& leaf : leaves) leaf = leaf.grad();
  return leaves;
}

}  // namespace headroom::runner
