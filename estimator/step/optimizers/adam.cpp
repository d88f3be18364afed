// torch/optim/adam.py and adamw.py (defaults: no amsgrad, not capturable). Weight decay of AdamW is in place; the
// foreach step makes one list of square roots, the for-loop step keeps `denom` until the next parameter's is bound.
#include "estimator/step/optimizer.h"

namespace headroom {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(OptimizerImpl impl, bool decoupled_decay, std::vector<OptimizerParameter> parameters)
      : impl_(impl),
        decoupled_decay_(decoupled_decay),
        parameters_(std::move(parameters)),
        state_(parameters_.size()) {}

  void step(OptimizerContext& c) override {
    const auto groups = gradient_groups(c, parameters_);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (state_[i].mean.valid() || !c.machine().has_grad(parameters_[i].slot)) continue;
      state_[i].step = c.state_scalar(impl_ != OptimizerImpl::fused);
      state_[i].mean = c.state_like(parameters_[i]);
      state_[i].variance = c.state_like(parameters_[i]);
    }
    for (const GradientGroup& g : groups) {
      switch (impl_) {
        case OptimizerImpl::foreach:
          foreach_step(c, g);
          break;
        case OptimizerImpl::fused:
          fused_step(c, g);
          break;
        case OptimizerImpl::for_loop:
          loop_step(c, g);
          break;
      }
    }
    drop_gradients(c, groups);
  }

 private:
  struct State {
    SlotId step, mean, variance;
  };

  Slots list(const GradientGroup& g, SlotId State::*member) const {
    Slots out;
    for (const auto i : g.indices) out.push_back(state_[i].*member);
    return out;
  }

  void foreach_step(OptimizerContext& c, const GradientGroup& g) {
    const Slots means = list(g, &State::mean), variances = list(g, &State::variance);
    if (decoupled_decay_) c.call("aten::_foreach_mul_.Scalar", {g.parameters, 1 - lr * 1e-2});
    c.call("aten::_foreach_lerp_.Scalar", {means, g.gradients, 0.1});
    c.call("aten::_foreach_mul_.Scalar", {variances, 0.999});
    c.call("aten::_foreach_addcmul_.Scalar", {variances, g.gradients, g.gradients, 0.001});
    const Slots roots = c.fresh(g.indices.size());
    c.call("aten::_foreach_sqrt", {variances}, roots);
    c.call("aten::_foreach_div_.Scalar", {roots, 0.03});
    c.call("aten::_foreach_add_.Scalar", {roots, 1e-8});
    c.call("aten::_foreach_addcdiv_.Scalar", {g.parameters, means, roots, -lr});
    c.drop_list(roots);
  }

  void fused_step(OptimizerContext& c, const GradientGroup& g) {
    const Slots steps = list(g, &State::step);
    c.call("aten::_foreach_add_.Scalar", {steps, std::int64_t{1}});
    c.call(decoupled_decay_ ? "aten::_fused_adamw_" : "aten::_fused_adam_",
           {g.parameters, g.gradients, list(g, &State::mean), list(g, &State::variance), Slots{}, steps, lr, 0.9, 0.999,
            decoupled_decay_ ? 1e-2 : 0.0, 1e-8, false, false});
  }

  void loop_step(OptimizerContext& c, const GradientGroup& g) {
    SlotId denom;
    for (std::size_t k = 0; k < g.indices.size(); ++k) {
      const State& s = state_[g.indices[k]];
      if (decoupled_decay_) c.call("aten::mul_.Scalar", {g.parameters[k], 1 - lr * 1e-2});
      c.call("aten::lerp_.Scalar", {s.mean, g.gradients[k], 0.1});
      c.call("aten::mul_.Scalar", {s.variance, 0.999});
      c.call("aten::addcmul_", {s.variance, g.gradients[k], g.gradients[k], 0.001});
      const SlotId root = c.one("aten::sqrt", {s.variance});
      const SlotId quotient = c.one("aten::div.Scalar", {root, 0.03});
      c.machine().drop(root);
      c.call("aten::add_.Scalar", {quotient, 1e-8, std::int64_t{1}});
      if (denom.valid()) c.machine().drop(denom);
      denom = quotient;
      c.call("aten::addcdiv_", {g.parameters[k], s.mean, denom, -lr});
    }
    if (denom.valid()) c.machine().drop(denom);
  }

  static constexpr double lr = 1e-5;
  OptimizerImpl impl_;
  bool decoupled_decay_;
  std::vector<OptimizerParameter> parameters_;
  std::vector<State> state_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(OptimizerImpl impl, bool decoupled_decay,
                                     std::vector<OptimizerParameter> parameters) {
  return std::make_unique<Adam>(impl, decoupled_decay, std::move(parameters));
}

}  // namespace headroom
