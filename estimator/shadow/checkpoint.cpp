#include "estimator/shadow/checkpoint.h"

#include <algorithm>
#include <utility>

namespace headroom::shadow {

/// A segment's rerun: variables of its own, with gradients, in the autocast state of the forward run with a cache of
/// its own. What stood before stands again when this goes.
class RerunScope {
 public:
  RerunScope(Shadow& m, const CheckpointSegment& segment, AutocastState autocast,
             std::shared_ptr<CheckpointFrame> hooks)
      : m_(m), segment_(segment), hooks_(std::exchange(m.checkpoint_, std::move(hooks))) {
    inputs_ = taken(segment.inputs);
    inner_ = taken(segment.inner);
    grad_ = std::exchange(m.grad_enabled_, true);
    below_autograd_ = std::exchange(m.below_autograd_, 0);
    autocast_.dtype = std::exchange(m.autocast_, autocast.dtype);
    depth_ = std::exchange(m.autocast_depth_, autocast.dtype == DType::undefined ? 0 : 1);
    autocast_.suspended = std::exchange(m.autocast_suspended_, autocast.suspended);
    cache_ = std::exchange(m.cast_cache_, {});
    module_ = m.recorder_.module;
    site_ = m.recorder_.site;
    op_ = m.recorder_.op;
  }
  ~RerunScope() {
    for (const SlotId s : segment_.inner) m_.slots_[s.at()] = Value{};
    m_.cast_cache_ = std::move(cache_);
    m_.autocast_suspended_ = autocast_.suspended;
    m_.autocast_depth_ = depth_;
    m_.autocast_ = autocast_.dtype;
    m_.below_autograd_ = below_autograd_;
    m_.grad_enabled_ = grad_;
    m_.checkpoint_ = std::move(hooks_);
    m_.recorder_.module = module_;
    m_.recorder_.site = site_;
    m_.recorder_.op = op_;
    for (std::size_t i = 0; i < inputs_.size(); ++i) m_.slots_[segment_.inputs[i].at()] = std::move(inputs_[i]);
    for (std::size_t i = 0; i < inner_.size(); ++i) m_.slots_[segment_.inner[i].at()] = std::move(inner_[i]);
  }
  RerunScope(const RerunScope&) = delete;
  RerunScope& operator=(const RerunScope&) = delete;

  Value& input(std::size_t i) { return m_.slots_[segment_.inputs[i].at()]; }
  const Value& result(std::size_t i) const { return m_.slots_[segment_.outputs[i].at()]; }

 private:
  std::vector<Value> taken(const Slots& slots) {
    std::vector<Value> held;
    held.reserve(slots.size());
    for (const SlotId s : slots) held.push_back(std::exchange(m_.slots_[s.at()], Value{}));
    return held;
  }

  Shadow& m_;
  const CheckpointSegment& segment_;
  std::shared_ptr<CheckpointFrame> hooks_;
  std::vector<Value> inputs_, inner_;
  bool grad_ = false;
  int below_autograd_ = 0, depth_ = 0;
  AutocastState autocast_;
  CastCache cache_;
  ModuleId module_;
  std::int32_t site_ = -1, op_ = -1;
};

// ---- not reentrant -------------------------------------------------------------------------------------------------

CheckpointFrame::CheckpointFrame(Shadow& m, const CheckpointSegment& segment)
    : segment_(segment), autocast_{m.autocast_, m.autocast_suspended_} {
  arguments_.reserve(segment.inputs.size());
  for (const SlotId s : segment.inputs) {
    const Value& v = m.slots_[s.at()];
    Argument& a = arguments_.emplace_back();
    if (v.is_tensor() && !v.tensor()->host) {
      a.needs_grad = v.tensor()->needs_grad();
      a.saved = SavedVariable(m, v.tensor(), false);
    } else {
      a.value = v;
    }
  }
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
  stored_.reserve(packed_);
  // A segment inside another gets its inputs from the other's rerun.
  std::vector<Value> arguments;
  arguments.reserve(arguments_.size());
  for (const Argument& a : arguments_) {
    Tensor t = a.saved.defined() ? a.saved.unpack(m) : Tensor();
    if (t && a.needs_grad && !t->needs_grad()) {
      t = m.alias(t);
      t->requires_grad = true;  // the outer segment's rerun stored it without its node
    }
    arguments.push_back(t ? Value(std::move(t)) : a.value);
  }
  rerunning_ = true;
  {
    RerunScope scope(m, segment_, autocast_, shared_from_this());
    for (std::size_t i = 0; i < arguments.size(); ++i) scope.input(i) = std::move(arguments[i]);
    try {
      segment_.rerun();
    } catch (const Stop&) {
    }
  }
  rerunning_ = false;
  stored_.resize(packed_);
}

bool CheckpointFrame::keeps(const Shadow::Entry& e) const {
  return std::find(segment_.save.begin(), segment_.save.end(), e.name) != segment_.save.end();
}

Outputs CheckpointFrame::kept(Shadow& m, const Shadow::Entry& e, std::span<const Value> args) {
  Results& results = kept_[&e];
  if (rerunning_) return std::exchange(results.of_forward[results.taken++], Outputs{});
  Outputs out = m.run_kernel(e, args);
  // Detached, so that results and frame do not own each other.
  Outputs& copies = results.of_forward.emplace_back();
  for (const Value& v : out) copies.push_back(v.is_tensor() && v.tensor() ? Value(m.alias(v.tensor())) : v);
  return out;
}

// ---- reentrant -----------------------------------------------------------------------------------------------------

ReentrantNode::ReentrantNode(Shadow& m, const CheckpointSegment& segment)
    : segment_(segment), autocast_{m.autocast_, m.autocast_suspended_} {
  sequence = m.next_sequence();
  module = m.recorder().module;
  site = m.recorder().site;
  for (const SlotId s : segment.inputs) {
    const Value& v = m.slots_[s.at()];
    const bool tensor = v.is_tensor() && v.tensor();
    next.push_back(tensor ? gradient_edge(m, v.tensor()) : Edge{});
    needs_grad_.push_back(tensor && v.tensor()->needs_grad());
    values_.push_back(tensor && !v.tensor()->host ? Value{} : v);
    arguments_.push_back(tensor && !v.tensor()->host ? SavedVariable(m, v.tensor(), false) : SavedVariable{});
  }
}

void ReentrantNode::take_results(Shadow& m) {
  if (std::find(needs_grad_.begin(), needs_grad_.end(), 1) == needs_grad_.end()) return;
  const Ref<Node> self(this);
  for (const SlotId s : segment_.outputs) {
    const Value& v = m.slots_[s.at()];
    if (!v.is_tensor() || !v.tensor()) {
      inputs.push_back({});
      continue;
    }
    const Tensor& t = v.tensor();
    inputs.push_back({t->sizes, t->dtype});
    if (!is_float(t->dtype)) continue;
    t->grad_fn = self;
    t->output_nr = static_cast<std::uint16_t>(inputs.size() - 1);
  }
}

Gradients ReentrantNode::apply(Shadow& m, const Gradients& grads) {
  std::vector<Tensor> leaves(segment_.inputs.size()), roots, root_grads;
  std::vector<Value> results;
  {
    RerunScope scope(m, segment_, autocast_, nullptr);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!arguments_[i].defined()) {
        scope.input(i) = values_[i];
        continue;
      }
      leaves[i] = m.alias(arguments_[i].unpack(m));
      leaves[i]->requires_grad = needs_grad_[i] != 0;
      scope.input(i) = Value(leaves[i]);
    }
    segment_.rerun();
    for (std::size_t i = 0; i < segment_.outputs.size(); ++i) results.push_back(scope.result(i));
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].is_tensor() && needs_grad(results[i].tensor())) {
      roots.push_back(results[i].tensor());
      root_grads.push_back(grads[i]);
    }
  run_backward(m, roots, std::move(root_grads));
  Gradients out(next.size());
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i]) out[i] = leaves[i]->grad;
  return out;
}

}  // namespace headroom::shadow
