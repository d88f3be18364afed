#include "estimator/shadow/shadow.h"
#include "estimator/shadow/tables/aten_table.h"
#include "estimator/step/optimizer.h"
#include "tests/operators/peaks/figures.h"
#include "tests/operators/replay.h"

namespace headroom::peaks {
namespace {

struct Choice {
  std::string_view name;
  OptimizerKind kind;
  OptimizerImpl impl = OptimizerImpl::foreach;
};
constexpr Choice choices[] = {
    {"optim sgd", OptimizerKind::sgd},
    {"optim sgd_m", OptimizerKind::sgd_momentum},
    {"optim adam", OptimizerKind::adam},
    {"optim adamw", OptimizerKind::adamw},
    {"optim adamw_loop", OptimizerKind::adamw, OptimizerImpl::for_loop},
    {"optim adamw_fused", OptimizerKind::adamw, OptimizerImpl::fused},
    {"optim adagrad", OptimizerKind::adagrad},
    {"optim adadelta", OptimizerKind::adadelta},
    {"optim adafactor", OptimizerKind::adafactor, OptimizerImpl::for_loop},
    {"optim muon", OptimizerKind::muon, OptimizerImpl::for_loop},
};

}  // namespace

Figures of_optimizer(std::string_view name) {
  const Choice* choice = nullptr;
  for (const Choice& c : choices)
    if (c.name == name) choice = &c;
  if (!choice) return {};
  constexpr std::size_t count = 16;
  const Dims dims{1024, 1024};
  shadow::Shadow m(*aten::table_for("2.11").table, probes::recording_card());
  std::size_t next_slot = count;
  m.reserve_slots(next_slot);
  OptimizerContext context(m, next_slot);
  std::vector<OptimizerParameter> parameters;
  for (std::size_t i = 0; i < count; ++i) {
    const SlotId p(static_cast<int>(i));
    m.create(p, {.dims = dims, .requires_grad = true, .parameter = true});
    const SlotId doubled = context.one("aten::mul.Tensor", {p, 2.0});
    m.backward(doubled);
    m.drop(doubled);
    parameters.push_back({p, dims, DType::f32});
  }
  m.set_grad_enabled(false);
  const auto optimizer = make_optimizer(choice->kind, choice->impl, std::move(parameters));
  optimizer->construct(context);
  m.phase(Phase::optimizer, 0);
  optimizer->step(context);
  m.phase(Phase::optimizer, 1);
  optimizer->step(context);
  m.phase(Phase::setup, 0);
  const auto w = windows(m.take_trace());
  return {{"state", w[0].left}, {"first_step_peak", w[0].peak}, {"step_peak", w[1].peak}};
}

}  // namespace headroom::peaks
