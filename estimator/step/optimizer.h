// Optimizers, as torch/optim writes them: what they keep, and the lists they make in step().
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "estimator/step/machine.h"

namespace headroom {

/// A parameter the optimizer was given.
struct OptimizerParameter {
  SlotId slot;
  Dims dims;
  DType dtype = DType::f32;
};

/// Variables and calls of an optimizer's code.
class OptimizerContext {
 public:
  OptimizerContext(Machine& machine, std::size_t& next_slot) : m_(machine), next_slot_(next_slot) {}

  Machine& machine() { return m_; }
  SlotId fresh();
  Slots fresh(std::size_t count);
  void call(std::string_view op, std::initializer_list<Arg> args, std::span<const SlotId> outputs = {});
  SlotId one(std::string_view op, std::initializer_list<Arg> args);
  /// `del list`: CPython frees a list from its last element to its first.
  void drop_list(const Slots& slots);
  /// torch.zeros_like(p): a state tensor that stays.
  SlotId state_like(const OptimizerParameter& p);
  /// A scalar state tensor (`step`): on the device only for fused implementations.
  SlotId state_scalar(bool host);

 private:
  Machine& m_;
  std::size_t& next_slot_;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// State made by the constructor, before the first step.
  virtual void construct(OptimizerContext&) {}
  /// optimizer.step(): parameters without a gradient are passed over.
  virtual void step(OptimizerContext&) = 0;
};

/// The optimizer of the scenario over `parameters` (named_parameters order); null for `--optimizer none`.
std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, OptimizerImpl impl,
                                          std::vector<OptimizerParameter> parameters);

std::unique_ptr<Optimizer> make_sgd(OptimizerImpl, double momentum, std::vector<OptimizerParameter>);
std::unique_ptr<Optimizer> make_adam(OptimizerImpl, bool decoupled_decay, std::vector<OptimizerParameter>);
std::unique_ptr<Optimizer> make_adagrad(OptimizerImpl, std::vector<OptimizerParameter>);
std::unique_ptr<Optimizer> make_rmsprop(OptimizerImpl, std::vector<OptimizerParameter>);
std::unique_ptr<Optimizer> make_adadelta(OptimizerImpl, std::vector<OptimizerParameter>);
std::unique_ptr<Optimizer> make_adafactor(OptimizerImpl, std::vector<OptimizerParameter>);
std::unique_ptr<Optimizer> make_lion(OptimizerImpl, std::vector<OptimizerParameter>);
std::unique_ptr<Optimizer> make_muon(OptimizerImpl, std::vector<OptimizerParameter>);
std::unique_ptr<Optimizer> make_adamw8bit(OptimizerImpl, std::vector<OptimizerParameter>);

/// Parameters that have a gradient, with slots holding it, grouped as _group_tensors_by_device_and_dtype does.
struct GradientGroup {
  std::vector<std::size_t> indices;  ///< into the optimizer's parameters
  Slots parameters;
  Slots gradients;
};
std::vector<GradientGroup> gradient_groups(OptimizerContext& context,
                                           const std::vector<OptimizerParameter>& parameters);
void drop_gradients(OptimizerContext& context, const std::vector<GradientGroup>& groups);

}  // namespace headroom
