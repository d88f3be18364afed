// torch/optim/sgd.py. The momentum buffer is a clone of the first gradient.
#include "estimator/step/optimizer.h"

namespace headroom {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(OptimizerImpl impl, double momentum, std::vector<OptimizerParameter> parameters)
      : impl_(impl), momentum_(momentum), parameters_(std::move(parameters)), buffers_(parameters_.size()) {}

  void step(OptimizerContext& c) override {
    const auto groups = gradient_groups(c, parameters_);
    for (const GradientGroup& g : groups) {
      if (impl_ == OptimizerImpl::for_loop)
        for_loop(c, g);
      else
        lists(c, g);
    }
    drop_gradients(c, groups);
  }

 private:
  /// Buffers of the group; `fresh` is set when they were just cloned from the gradients.
  Slots buffers(OptimizerContext& c, const GradientGroup& g, bool& fresh) {
    Slots out;
    fresh = false;
    for (std::size_t k = 0; k < g.indices.size(); ++k) {
      SlotId& b = buffers_[g.indices[k]];
      if (!b.valid()) {
        c.machine().purpose(Category::optimizer_state);
        // The fused kernel wants the buffers allocated before it runs; the others clone the gradient.
        b = c.one(impl_ == OptimizerImpl::fused ? "aten::empty_like" : "aten::clone", {g.gradients[k]});
        c.machine().purpose(Category::optimizer_temporaries);
        fresh = true;
      }
      out.push_back(b);
    }
    return out;
  }

  void lists(OptimizerContext& c, const GradientGroup& g) {
    bool fresh = false;
    Slots momenta = momentum_ != 0 ? buffers(c, g, fresh) : Slots{};
    if (impl_ == OptimizerImpl::fused) {
      c.call("aten::_fused_sgd_", {g.parameters, g.gradients, momenta, 0.0, momentum_, 1e-4, 0.0, false, false, fresh});
      return;
    }
    if (momentum_ != 0 && !fresh) {
      c.call("aten::_foreach_mul_.Scalar", {momenta, momentum_});
      c.call("aten::_foreach_add_.List", {momenta, g.gradients, std::int64_t{1}});
    }
    c.call("aten::_foreach_add_.List", {g.parameters, momentum_ != 0 ? momenta : g.gradients, -1e-4});
  }

  void for_loop(OptimizerContext& c, const GradientGroup& g) {
    bool fresh = false;
    const Slots momenta = momentum_ != 0 ? buffers(c, g, fresh) : Slots{};
    for (std::size_t k = 0; k < g.parameters.size(); ++k) {
      if (momentum_ != 0 && !fresh) {
        c.call("aten::mul_.Scalar", {momenta[k], momentum_});
        c.call("aten::add_.Tensor", {momenta[k], g.gradients[k], 1.0});
      }
      c.call("aten::add_.Tensor", {g.parameters[k], momentum_ != 0 ? momenta[k] : g.gradients[k], -1e-4});
    }
  }

  OptimizerImpl impl_;
  double momentum_;
  std::vector<OptimizerParameter> parameters_;
  Slots buffers_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(OptimizerImpl impl, double momentum, std::vector<OptimizerParameter> parameters) {
  return std::make_unique<Sgd>(impl, momentum, std::move(parameters));
}

}  // namespace headroom
