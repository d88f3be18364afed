#include "estimator/step/optimizer.h"

#include <utility>

namespace headroom {

SlotId OptimizerContext::fresh() {
  const SlotId s(next_slot_++);
  m_.reserve_slots(next_slot_);
  return s;
}

Slots OptimizerContext::fresh(std::size_t count) {
  Slots out;
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) out.push_back(SlotId(next_slot_++));
  m_.reserve_slots(next_slot_);
  return out;
}

void OptimizerContext::call(std::string_view op, std::initializer_list<Arg> args, std::span<const SlotId> outputs) {
  m_.call(op, {args.begin(), args.size()}, outputs, {ModuleId{}, "optimizer.step"});
}

SlotId OptimizerContext::one(std::string_view op, std::initializer_list<Arg> args) {
  const SlotId out = fresh();
  call(op, args, {&out, 1});
  return out;
}

void OptimizerContext::drop_list(const Slots& slots) {
  for (std::size_t i = slots.size(); i-- > 0;) m_.drop(slots[i]);
}

SlotId OptimizerContext::state_like(const OptimizerParameter& p) {
  m_.purpose(Category::optimizer_state);
  const SlotId s = one("aten::zeros_like", {p.slot});
  m_.purpose(Category::optimizer_temporaries);
  return s;
}

SlotId OptimizerContext::state_scalar(bool host) {
  const SlotId s = fresh();
  m_.create(s, {.dims = {}, .dtype = DType::f32, .category = Category::optimizer_state, .host = host, .name = "step"});
  return s;
}

std::vector<GradientGroup> gradient_groups(OptimizerContext& context,
                                           const std::vector<OptimizerParameter>& parameters) {
  std::vector<std::pair<DType, GradientGroup>> groups;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!context.machine().has_grad(parameters[i].slot)) continue;
    GradientGroup* group = nullptr;
    for (auto& [dtype, g] : groups)
      if (dtype == parameters[i].dtype) group = &g;
    if (!group) group = &groups.emplace_back(parameters[i].dtype, GradientGroup{}).second;
    const SlotId grad = context.fresh();
    context.machine().load_grad(grad, parameters[i].slot);
    group->indices.push_back(i);
    group->parameters.push_back(parameters[i].slot);
    group->gradients.push_back(grad);
  }
  std::vector<GradientGroup> out;
  out.reserve(groups.size());
  for (auto& [dtype, g] : groups) out.push_back(std::move(g));
  return out;
}

void drop_gradients(OptimizerContext& context, const std::vector<GradientGroup>& groups) {
  for (const auto& g : groups) context.drop_list(g.gradients);
}

std::unique_ptr<Optimizer> make_optimizer(OptimizerKind kind, OptimizerImpl impl,
                                          std::vector<OptimizerParameter> parameters) {
  switch (kind) {
    case OptimizerKind::sgd:
      return make_sgd(impl, 0.0, std::move(parameters));
    case OptimizerKind::sgd_momentum:
      return make_sgd(impl, 0.9, std::move(parameters));
    case OptimizerKind::adam:
      return make_adam(impl, false, std::move(parameters));
    case OptimizerKind::adamw:
      return make_adam(impl, true, std::move(parameters));
    case OptimizerKind::adagrad:
      return make_adagrad(impl, std::move(parameters));
    case OptimizerKind::rmsprop:
      return make_rmsprop(impl, std::move(parameters));
    case OptimizerKind::adadelta:
      return make_adadelta(impl, std::move(parameters));
    case OptimizerKind::adafactor:
      return make_adafactor(impl, std::move(parameters));
    case OptimizerKind::lion:
      return make_lion(impl, std::move(parameters));
    case OptimizerKind::muon:
      return make_muon(impl, std::move(parameters));
    case OptimizerKind::adamw8bit:
      return make_adamw8bit(impl, std::move(parameters));
    case OptimizerKind::none:
      break;
  }
  return nullptr;
}

}  // namespace headroom
