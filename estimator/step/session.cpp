#include "estimator/step/session.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/step/checkpoint.h"
#include "estimator/step/labels.h"
#include "estimator/step/optimizer.h"
#include "estimator/step/recurrent_weights.h"

namespace headroom {
namespace {

/// The order in which Module._apply visits tensors: children first, then a module's own parameters and buffers.
class ApplyOrder {
 public:
  explicit ApplyOrder(const std::vector<Parameter>& parameters) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      Module& m = modules_[module_of(parent(parameters[i].name))];
      (parameters[i].buffer ? m.buffers : m.parameters).push_back(i);
    }
    visit(0);
  }
  const std::vector<std::size_t>& indices() const { return indices_; }

 private:
  struct Module {
    std::vector<std::size_t> children, parameters, buffers;
  };

  static std::string_view parent(std::string_view path) {
    const auto dot = path.rfind('.');
    return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
  }

  std::size_t module_of(std::string_view path) {
    if (path.empty()) return 0;
    const auto [known, fresh] = by_path_.try_emplace(path, modules_.size());
    const std::size_t at = known->second;
    if (!fresh) return at;
    modules_.emplace_back();
    const std::size_t above = module_of(parent(path));
    modules_[above].children.push_back(at);
    return at;
  }

  void visit(std::size_t at) {
    const Module& m = modules_[at];
    for (const std::size_t child : m.children) visit(child);
    indices_.insert(indices_.end(), m.parameters.begin(), m.parameters.end());
    indices_.insert(indices_.end(), m.buffers.begin(), m.buffers.end());
  }

  std::vector<Module> modules_{1};  ///< the root first
  std::unordered_map<std::string_view, std::size_t> by_path_;
  std::vector<std::size_t> indices_;
};

}  // namespace

std::vector<bool> trainable_parameters(const Program& program, const Scenario& scenario) {
  std::vector<bool> trainable(program.parameters.size());
  for (std::size_t i = 0; i < trainable.size(); ++i)
    trainable[i] = program.parameters[i].trainable && !program.parameters[i].buffer;
  for (const std::string& glob : scenario.freeze) {
    bool matched = false;
    for (std::size_t i = 0; i < trainable.size(); ++i) {
      const Parameter& p = program.parameters[i];
      const bool hit = glob_match(glob, p.name) || std::any_of(p.also_named.begin(), p.also_named.end(),
                                                               [&](const auto& n) { return glob_match(glob, n); });
      if (!hit || p.buffer) continue;
      matched = true;
      trainable[i] = false;
    }
    if (matched) continue;
    std::vector<std::string> names;
    for (const auto& p : program.parameters)
      if (!p.buffer) names.push_back(p.name);
    const auto near = nearest(glob, names);
    throw usage_error("--freeze '" + printable(glob) + "' matches no parameter of this file", "",
                      near.empty() ? "names as in named_parameters(); an inference export may have lost them: "
                                     "`headroom inspect --stage program` lists what is there"
                                   : "did you mean '" + printable(near) + "'?");
  }
  return trainable;
}

Session::Session(Machine& machine, std::span<const Program* const> programs, const Scenario& scenario)
    : m_(machine), scenario_(scenario), model_(*programs.front()) {
  for (const Program* p : programs) next_slot_ = std::max(next_slot_, p->slot_count());
  m_.reserve_slots(next_slot_);
  for (const auto& p : model_.parameters) parameters_.push_back(p.slot);
  trainable_ = trainable_parameters(model_, scenario_);
}

Session::~Session() = default;

SlotId Session::fresh() {
  const SlotId s(next_slot_++);
  m_.reserve_slots(next_slot_);
  return s;
}

void Session::call(std::string_view op, const std::vector<Arg>& args, const Slots& outputs, std::string_view text) {
  m_.call(op, args, outputs, {ModuleId{}, text});
}

void Session::setup() {
  m_.phase(Phase::setup, 0);
  move_to_device();
  std::vector<OptimizerParameter> trained;
  const DType cast = scenario_.module_dtype();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!trainable_[i]) continue;
    const Parameter& p = model_.parameters[i];
    trained.push_back({p.slot, p.dims, cast != DType::undefined && is_float(p.dtype) ? cast : p.dtype});
  }
  if (!scenario_.training()) return;
  optimizer_ = make_optimizer(scenario_.optimizer, scenario_.optimizer_impl, std::move(trained));
  if (!optimizer_) return;
  m_.purpose(Category::optimizer_state);
  OptimizerContext context(m_, next_slot_);
  optimizer_->construct(context);
}

void Session::move_to_device() {
  const ApplyOrder apply_order(model_.parameters);
  const auto& order = apply_order.indices();
  const DType cast = scenario_.module_dtype();
  const bool cast_after_move = cast != DType::undefined && scenario_.cast_on == CastOn::gpu;
  RecurrentWeights recurrent(model_);
  const auto create = [&](std::size_t i, SlotId slot, DType dtype, bool channels_last) {
    const Parameter& p = model_.parameters[i];
    m_.create(slot, {.dims = p.dims,
                     .dtype = dtype,
                     .category = p.buffer ? Category::buffers : Category::weights,
                     .requires_grad = trainable_[i],
                     .parameter = !p.buffer,
                     .channels_last = channels_last,
                     .name = p.name});
  };
  const auto target_dtype = [&](const Parameter& p) {
    return cast != DType::undefined && is_float(p.dtype) ? cast : p.dtype;
  };
  // A new tensor is made, then the old one goes: one tensor at a time.
  const auto replace = [&](std::size_t i, DType dtype, bool channels_last) {
    const SlotId old = fresh();
    m_.assign(old, parameters_[i]);
    create(i, parameters_[i], dtype, channels_last);
    m_.drop(old);
    recurrent.made(m_, parameters_[i], dtype);
  };
  for (const auto i : order) {
    const DType dtype = cast_after_move ? model_.parameters[i].dtype : target_dtype(model_.parameters[i]);
    create(i, parameters_[i], dtype, false);
    recurrent.made(m_, parameters_[i], dtype);
  }
  if (cast_after_move)
    for (const auto i : order)
      if (target_dtype(model_.parameters[i]) != model_.parameters[i].dtype)
        replace(i, target_dtype(model_.parameters[i]), false);
  if (scenario_.channels_last)
    for (const auto i : order)
      if (model_.parameters[i].dims.size() == 4) replace(i, target_dtype(model_.parameters[i]), true);
}

void Session::make_batch(const Program& program) {
  if (batch_of_ == &program) return;
  if (batch_of_) drop_batch();
  batch_of_ = &program;
  const DType cast = scenario_.module_dtype();
  for (const ProgramInput& i : program.inputs)
    m_.create(i.slot, {.dims = i.dims,
                       .dtype = cast != DType::undefined && is_float(i.dtype) ? cast : i.dtype,
                       .category = Category::inputs,
                       .host = !i.passed,
                       .channels_last = scenario_.channels_last,
                       .name = i.name});
  const std::optional<Labels> labels = labels_of(program, scenario_);
  if (!labels) return;
  if (!target_.valid()) target_ = fresh();
  m_.create(target_, {.dims = labels->dims, .dtype = labels->dtype, .category = Category::inputs, .name = "target"});
}

void Session::drop_batch() {
  for (const ProgramInput& i : batch_of_->inputs) m_.drop(i.slot);
  if (target_.valid()) m_.drop(target_);
}

void Session::step(int index, const Program& program) {
  m_.phase(Phase::forward, index);
  m_.purpose(Category::inputs);
  make_batch(program);
  m_.purpose(Category::forward_temporaries);
  if (scenario_.training() && scenario_.zero_grad == ZeroGrad::before_forward) zero_gradients();
  if (std::exchange(passed_, &program) != &program || !m_.repeat_pass(index)) pass(index, program);
  if (scenario_.training()) {
    update(index);
  } else {
    m_.phase(Phase::zero_grad, index);
    if (!scenario_.keeps_outputs()) drop_outputs();
  }
}

void Session::pass(int index, const Program& program) {
  m_.begin_pass(index);
  if (scenario_.training())
    training_pass(index, program);
  else
    inference_pass(program);
  m_.end_pass();
}

void Session::forward(const Program& program) {
  const DType amp = scenario_.autocast_dtype();
  if (amp != DType::undefined) m_.enter_autocast(amp);
  std::unique_ptr<ForwardPass>& pass = forwards_[&program];
  if (!pass) pass = std::make_unique<ForwardPass>(m_, program, checkpointed_ranges(program, scenario_));
  pass->run();
  // `out = model(x)`: the previous result goes only now.
  std::size_t kept = 0;
  for (const ProgramOutput& o : program.outputs) {
    if (!m_.holds(o.slot)) continue;
    if (kept == kept_outputs_.size()) kept_outputs_.push_back(fresh());
    m_.assign(kept_outputs_[kept++], o.slot);
    m_.drop(o.slot);
  }
}

void Session::drop_outputs() {
  for (const SlotId s : kept_outputs_) m_.drop(s);
}

void Session::inference_pass(const Program& program) {
  m_.set_grad_enabled(false);
  forward(program);
  if (scenario_.autocast_dtype() != DType::undefined) m_.leave_autocast();
  m_.set_grad_enabled(true);
}

SlotId Session::loss_of_output(const Program& program) {
  const SlotId out = kept_outputs_.front();
  const Dims dims = m_.sizes(out);
  const SlotId loss = fresh();
  const auto text = std::string_view("loss");
  switch (scenario_.loss) {
    case LossKind::cross_entropy: {
      if (dims.empty())
        throw usage_error("cross-entropy needs scores of classes, but the first output '" +
                              printable(program.outputs.front().name) + "' is one number",
                          "", "--loss none: the model returns its loss");
      if (dims.size() == 3) {
        const SlotId logits = fresh(), labels = fresh();
        call("aten::view", {out, Dims{-1, dims.back()}}, {logits}, text);
        call("aten::view", {target_, Dims{-1}}, {labels}, text);
        call("aten::cross_entropy_loss", {logits, labels}, {loss}, text);
        m_.drop(logits);
        m_.drop(labels);
      } else {
        call("aten::cross_entropy_loss", {out, target_}, {loss}, text);
      }
      break;
    }
    case LossKind::causal_lm: {
      // transformers/loss/loss_utils.py ForCausalLMLoss: logits in float32, labels shifted left by one.
      const SlotId padded = fresh(), shifted = fresh(), labels = fresh(), flat = fresh(), full = fresh(),
                   logits = fresh();
      call("aten::to.dtype", {out, DType::f32}, {full}, text);
      call("aten::constant_pad_nd", {target_, Dims{0, 1}, std::int64_t{-100}}, {padded}, text);
      call("aten::slice.Tensor", {padded, std::int64_t{1}, std::int64_t{1}, Unset{}, std::int64_t{1}}, {shifted}, text);
      m_.drop(padded);
      call("aten::contiguous", {shifted}, {labels}, text);
      m_.drop(shifted);
      call("aten::view", {full, Dims{-1, dims.back()}}, {logits}, text);
      call("aten::view", {labels, Dims{-1}}, {flat}, text);
      m_.drop(labels);
      m_.drop(full);
      call("aten::cross_entropy_loss", {logits, flat, None{}, std::int64_t{1}, std::int64_t{-100}}, {loss}, text);
      m_.drop(logits);
      m_.drop(flat);
      break;
    }
    case LossKind::mse:
      call("aten::mse_loss", {out, target_}, {loss}, text);
      break;
    case LossKind::sum:
      call("aten::sum", {out}, {loss}, text);
      break;
    case LossKind::none: {
      // The model returns its loss.
      if (!dims.empty() && element_count(dims) != 1)
        throw usage_error("--loss none needs a model whose first output is the loss (one number), but '" +
                              printable(program.outputs.front().name) + "' is " + text_of(dims),
                          "", "name a loss: --loss cross-entropy | causal-lm | mse | sum");
      m_.assign(loss, out);
      break;
    }
  }
  return loss;
}

void Session::training_pass(int index, const Program& program) {
  const bool amp = scenario_.autocast_dtype() != DType::undefined;
  for (std::int64_t micro = 0; micro < scenario_.accumulate; ++micro) {
    if (micro > 0) m_.phase(Phase::forward, index);
    m_.purpose(Category::forward_temporaries);
    forward(program);
    const SlotId raw = loss_of_output(program), loss = fresh();
    call("aten::div.Tensor", {raw, scenario_.accumulate}, {loss}, "loss");
    m_.drop(raw);
    if (amp) m_.leave_autocast();
    if (!scenario_.keeps_outputs()) drop_outputs();
    m_.phase(Phase::backward, index);
    m_.purpose(Category::backward_temporaries);
    if (scenario_.zero_grad == ZeroGrad::before_backward && micro == 0) zero_gradients();
    if (scales()) {
      if (!scale_.valid()) {
        scale_ = fresh();
        growth_tracker_ = fresh();
        m_.create(scale_, {.dims = {}, .dtype = DType::f32, .category = Category::optimizer_state, .name = "scale"});
        m_.create(growth_tracker_,
                  {.dims = {}, .dtype = DType::i32, .category = Category::optimizer_state, .name = "growth_tracker"});
      }
      const SlotId scaled = fresh();
      call("aten::mul.Tensor", {loss, scale_}, {scaled}, "GradScaler.scale");
      m_.backward(scaled);
      m_.drop(scaled);
    } else {
      m_.backward(loss);
    }
    if (scenario_.leak == Leak::loss)
      leaked_.push_back(loss);
    else
      m_.drop(loss);
  }
}

void Session::update(int index) {
  m_.phase(Phase::optimizer, index);
  m_.purpose(Category::optimizer_temporaries);
  m_.set_grad_enabled(false);
  OptimizerContext context(m_, next_slot_);
  SlotId found_inf;
  if (scales() && optimizer_) {
    // GradScaler.unscale_: 1/scale computed in double; the flag and the inverse are copied for each device
    // (_MultiDeviceReplicator), and only the flag's copy outlives the call.
    const SlotId wide = context.one("aten::to.dtype", {scale_, DType::f64});
    const SlotId inverse_wide = context.one("aten::reciprocal", {wide});
    context.machine().drop(wide);
    const SlotId inverse = context.one("aten::to.dtype", {inverse_wide, DType::f32});
    context.machine().drop(inverse_wide);
    const SlotId flag = context.fresh();
    m_.create(flag,
              {.dims = {}, .dtype = DType::f32, .category = Category::optimizer_temporaries, .name = "found_inf"});
    Slots grads;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (trainable_[i] && m_.has_grad(parameters_[i])) {
        grads.push_back(context.fresh());
        m_.load_grad(grads.back(), parameters_[i]);
      }
    found_inf = context.one("aten::clone", {flag});
    const SlotId inverse_here = context.one("aten::clone", {inverse});
    context.call("aten::_amp_foreach_non_finite_check_and_unscale_", {grads, found_inf, inverse_here});
    context.drop_list(grads);
    m_.drop(inverse_here);
    m_.drop(inverse);
    m_.drop(flag);
  }
  if (scenario_.clip_grad) clip_gradients();
  // GradScaler.step: none after an overflow, which its first scales cause.
  if (optimizer_ && !(scales() && index < scenario_.skipped_steps)) optimizer_->step(context);
  if (found_inf.valid()) {
    context.call("aten::_amp_update_scale_", {scale_, growth_tracker_, found_inf, 2.0, 0.5, std::int64_t{2000}});
    m_.drop(found_inf);
  }
  m_.phase(Phase::zero_grad, index);
  if (scenario_.zero_grad == ZeroGrad::after_step) zero_gradients();
  m_.set_grad_enabled(true);
}

void Session::clip_gradients() {
  // torch/nn/utils/clip_grad.py, clip_grad_norm_(parameters, 1.0), foreach.
  OptimizerContext c(m_, next_slot_);
  Slots grads;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (trainable_[i] && m_.has_grad(parameters_[i])) {
      grads.push_back(c.fresh());
      m_.load_grad(grads.back(), parameters_[i]);
    }
  if (grads.empty()) return;
  const Slots norms = c.fresh(grads.size());
  c.call("aten::_foreach_norm.Scalar", {grads, 2.0}, norms);
  const SlotId stacked = c.one("aten::stack", {norms});
  const SlotId total = c.one("aten::linalg_vector_norm", {stacked, 2.0});
  m_.drop(stacked);
  c.drop_list(norms);
  const SlotId shifted = c.one("aten::add.Tensor", {total, 1e-6});
  const SlotId inverse = c.one("aten::reciprocal", {shifted});
  const SlotId coefficient = c.one("aten::mul.Tensor", {inverse, 1.0});
  m_.drop(inverse);
  m_.drop(shifted);
  const SlotId clamped = c.one("aten::clamp", {coefficient, None{}, 1.0});
  c.call("aten::_foreach_mul_.Tensor", {grads, clamped});
  m_.drop(clamped);
  m_.drop(coefficient);
  m_.drop(total);
  c.drop_list(grads);
}

void Session::zero_gradients() {
  // Only grads are touched: no gradient is recorded.
  if (!scenario_.keep_grads) {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (trainable_[i]) m_.clear_grad(parameters_[i]);
    return;
  }
  OptimizerContext c(m_, next_slot_);
  Slots grads;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (trainable_[i] && m_.has_grad(parameters_[i])) {
      grads.push_back(c.fresh());
      m_.load_grad(grads.back(), parameters_[i]);
    }
  if (!grads.empty()) c.call("aten::_foreach_zero_", {grads});
  c.drop_list(grads);
}

void run_session(Machine& machine, std::span<const Program* const> programs, const Scenario& scenario, int steps,
                 Diagnostics& diagnostics) {
  Session session(machine, programs, scenario);
  session.setup();
  for (int i = 0; i < steps; ++i) {
    const bool as_before = i > scenario.skipped_steps;  // until then the optimizer has no state
    if (as_before && programs.size() == 1 && machine.repeat_step(i)) continue;
    session.step(i, *programs[static_cast<std::size_t>(i) % programs.size()]);
  }
  diagnostics.insert(diagnostics.end(), session.diagnostics.begin(), session.diagnostics.end());
}

}  // namespace headroom
