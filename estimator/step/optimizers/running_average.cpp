// torch/optim/rmsprop.py, adagrad.py, adadelta.py: running averages of squared gradients and the lists their steps
// make.
#include "estimator/step/optimizer.h"

namespace headroom {
namespace {

constexpr double lr = 1e-5;

/// State tensors shaped as the parameters, one list per kind.
class AverageState {
 public:
  AverageState(std::size_t kinds, std::size_t parameters) : lists_(kinds, Slots(parameters)) {}

  void make(OptimizerContext& c, const std::vector<OptimizerParameter>& parameters, std::size_t i) {
    if (lists_[0][i].valid()) return;
    for (Slots& l : lists_) l[i] = c.state_like(parameters[i]);
  }
  Slots of(const GradientGroup& g, std::size_t kind) const {
    Slots out;
    for (const auto i : g.indices) out.push_back(lists_[kind][i]);
    return out;
  }
  SlotId one(std::size_t i, std::size_t kind) const { return lists_[kind][i]; }

 private:
  std::vector<Slots> lists_;
};

/// The for-loop's `std = sum.sqrt().add_(eps)`, for which the last parameter's makes room only now, and
/// `p.addcdiv_(grad, std)`.
void divide_by_root(OptimizerContext& c, SlotId& root, SlotId sum, double eps, SlotId parameter, SlotId gradient) {
  const SlotId next = c.one("aten::sqrt", {sum});
  if (root.valid()) c.machine().drop(root);
  root = next;
  c.call("aten::add_.Scalar", {root, eps, std::int64_t{1}});
  c.call("aten::addcdiv_", {parameter, gradient, root, -lr});
}

class RmsProp final : public Optimizer {
 public:
  RmsProp(OptimizerImpl impl, std::vector<OptimizerParameter> p)
      : impl_(impl), parameters_(std::move(p)), state_(1, parameters_.size()) {}

  void step(OptimizerContext& c) override {
    const auto groups = gradient_groups(c, parameters_);
    for (const auto& g : groups)
      for (const auto i : g.indices) state_.make(c, parameters_, i);
    for (const auto& g : groups) {
      const Slots squares = state_.of(g, 0);
      if (impl_ == OptimizerImpl::for_loop) {
        SlotId root;
        for (std::size_t k = 0; k < squares.size(); ++k) {
          c.call("aten::mul_.Scalar", {squares[k], 0.99});
          c.call("aten::addcmul_", {squares[k], g.gradients[k], g.gradients[k], 0.01});
          divide_by_root(c, root, squares[k], 1e-8, g.parameters[k], g.gradients[k]);
        }
        if (root.valid()) c.machine().drop(root);
        continue;
      }
      c.call("aten::_foreach_mul_.Scalar", {squares, 0.99});
      c.call("aten::_foreach_addcmul_.Scalar", {squares, g.gradients, g.gradients, 0.01});
      const Slots roots = c.fresh(squares.size());
      c.call("aten::_foreach_sqrt", {squares}, roots);
      c.call("aten::_foreach_add_.Scalar", {roots, 1e-8});
      c.call("aten::_foreach_addcdiv_.Scalar", {g.parameters, g.gradients, roots, -lr});
      c.drop_list(roots);
    }
    drop_gradients(c, groups);
  }

 private:
  OptimizerImpl impl_;
  std::vector<OptimizerParameter> parameters_;
  AverageState state_;
};

/// The sum of squares is made by the constructor; `step` is a host scalar except for fused.
class Adagrad final : public Optimizer {
 public:
  Adagrad(OptimizerImpl impl, std::vector<OptimizerParameter> p)
      : impl_(impl), parameters_(std::move(p)), state_(1, parameters_.size()), steps_(parameters_.size()) {}

  void construct(OptimizerContext& c) override {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      steps_[i] = c.state_scalar(impl_ != OptimizerImpl::fused);
      state_.make(c, parameters_, i);
    }
  }

  void step(OptimizerContext& c) override {
    const auto groups = gradient_groups(c, parameters_);
    for (const auto& g : groups) {
      const Slots sums = state_.of(g, 0);
      if (impl_ == OptimizerImpl::fused) {
        Slots steps;
        for (const auto i : g.indices) steps.push_back(steps_[i]);
        c.call("aten::_foreach_add_.Scalar", {steps, std::int64_t{1}});
        c.call("aten::_fused_adagrad_", {g.parameters, g.gradients, sums, steps, lr, 0.0, 0.0, 1e-10, false});
      } else if (impl_ == OptimizerImpl::for_loop) {
        SlotId root;
        for (std::size_t k = 0; k < sums.size(); ++k) {
          c.call("aten::addcmul_", {sums[k], g.gradients[k], g.gradients[k], 1.0});
          divide_by_root(c, root, sums[k], 1e-10, g.parameters[k], g.gradients[k]);
        }
        if (root.valid()) c.machine().drop(root);
      } else {
        c.call("aten::_foreach_addcmul_.Scalar", {sums, g.gradients, g.gradients, 1.0});
        const Slots roots = c.fresh(sums.size());
        c.call("aten::_foreach_sqrt", {sums}, roots);
        c.call("aten::_foreach_add_.Scalar", {roots, 1e-10});
        const Slots numerators = c.fresh(sums.size());
        c.call("aten::_foreach_mul.Scalar", {g.gradients, -lr}, numerators);
        c.call("aten::_foreach_addcdiv_.Scalar", {g.parameters, numerators, roots, 1.0});
        c.drop_list(numerators);
        c.drop_list(roots);
      }
    }
    drop_gradients(c, groups);
  }

 private:
  OptimizerImpl impl_;
  std::vector<OptimizerParameter> parameters_;
  AverageState state_;
  Slots steps_;
};

class Adadelta final : public Optimizer {
 public:
  Adadelta(OptimizerImpl impl, std::vector<OptimizerParameter> p)
      : impl_(impl), parameters_(std::move(p)), state_(2, parameters_.size()) {}

  void step(OptimizerContext& c) override {
    const auto groups = gradient_groups(c, parameters_);
    for (const auto& g : groups)
      for (const auto i : g.indices) state_.make(c, parameters_, i);
    for (const auto& g : groups) {
      const Slots squares = state_.of(g, 0), deltas_before = state_.of(g, 1);
      if (impl_ == OptimizerImpl::for_loop) {
        SlotId std, delta;
        for (std::size_t k = 0; k < squares.size(); ++k) {
          c.call("aten::mul_.Scalar", {squares[k], 0.9});
          c.call("aten::addcmul_", {squares[k], g.gradients[k], g.gradients[k], 0.1});
          const SlotId next_std = c.one("aten::add.Tensor", {squares[k], 1e-6});
          if (std.valid()) c.machine().drop(std);
          std = next_std;
          c.call("aten::sqrt_", {std});
          const SlotId next_delta = c.one("aten::add.Tensor", {deltas_before[k], 1e-6});
          if (delta.valid()) c.machine().drop(delta);
          delta = next_delta;
          c.call("aten::sqrt_", {delta});
          c.call("aten::div_.Tensor", {delta, std});
          c.call("aten::mul_.Tensor", {delta, g.gradients[k]});
          c.call("aten::mul_.Scalar", {deltas_before[k], 0.9});
          c.call("aten::addcmul_", {deltas_before[k], delta, delta, 0.1});
          c.call("aten::add_.Tensor", {g.parameters[k], delta, -lr});
        }
        for (const SlotId s : {std, delta})
          if (s.valid()) c.machine().drop(s);
        continue;
      }
      c.call("aten::_foreach_mul_.Scalar", {squares, 0.9});
      c.call("aten::_foreach_addcmul_.Scalar", {squares, g.gradients, g.gradients, 0.1});
      const Slots std = c.fresh(squares.size());
      c.call("aten::_foreach_add.Scalar", {squares, 1e-6}, std);
      c.call("aten::_foreach_sqrt_", {std});
      const Slots deltas = c.fresh(squares.size());
      c.call("aten::_foreach_add.Scalar", {deltas_before, 1e-6}, deltas);
      c.call("aten::_foreach_sqrt_", {deltas});
      c.call("aten::_foreach_div_.List", {deltas, std});
      c.call("aten::_foreach_mul_.List", {deltas, g.gradients});
      c.call("aten::_foreach_mul_.Scalar", {deltas_before, 0.9});
      c.call("aten::_foreach_addcmul_.Scalar", {deltas_before, deltas, deltas, 0.1});
      c.call("aten::_foreach_add_.List", {g.parameters, deltas, -lr});
      c.drop_list(deltas);
      c.drop_list(std);
    }
    drop_gradients(c, groups);
  }

 private:
  OptimizerImpl impl_;
  std::vector<OptimizerParameter> parameters_;
  AverageState state_;
};

}  // namespace

std::unique_ptr<Optimizer> make_rmsprop(OptimizerImpl impl, std::vector<OptimizerParameter> p) {
  return std::make_unique<RmsProp>(impl, std::move(p));
}
std::unique_ptr<Optimizer> make_adagrad(OptimizerImpl impl, std::vector<OptimizerParameter> p) {
  return std::make_unique<Adagrad>(impl, std::move(p));
}
std::unique_ptr<Optimizer> make_adadelta(OptimizerImpl impl, std::vector<OptimizerParameter> p) {
  return std::make_unique<Adadelta>(impl, std::move(p));
}

}  // namespace headroom
