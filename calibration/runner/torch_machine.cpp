#include "calibration/runner/torch_machine.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include <chrono>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "calibration/runner/checkpoint.h"
#include "calibration/runner/dispatch.h"
#include "calibration/runner/dtypes.h"
#include "calibration/runner/settings.h"
#include "calibration/runner/values.h"
#include "estimator/base/error.h"
#include "estimator/step/session.h"

namespace headroom::runner {
namespace {

using c10::IValue;
using Clock = std::chrono::steady_clock;

Dims dims_of(const at::Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }

class TorchMachine final : public Machine {
 public:
  TorchMachine(const Job& job, Device& device, Report& report)
      : job_(job),
        memory_(device),
        report_(report),
        device_(job.device == "cuda" ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU)),
        dispatch_(device_),
        autocast_(device_.type()),
        values_(job) {
    install_saved_tensor_hooks();
    apply_settings(job.scenario, job.seed);
    for (std::size_t i = 0; i < job.programs.size(); ++i)
      for (const auto& o : job.programs[i]->outputs) outputs_[o.slot] = o.name;
    device.watch([this](const MemoryEvent& e) {
      const bool refused = e.kind == MemoryEvent::Kind::out_of_memory;
      if (!refused && (!job_.history || !begin_)) return;  // no phase: the machine is taken down
      const auto node = torch::autograd::get_current_node();
      const std::string name = node ? node->name() : std::string();
      if (refused) report_.refused(name);
      if (job_.history) report_.memory(e, name);
    });
  }

  void reserve_slots(std::size_t count) override {
    if (slots_.size() < count) slots_.resize(count);
  }

  void create(SlotId slot, const TensorSpec& spec) override {
    report_.place.site = spec.name;
    const at::NoGradGuard no_grad;
    at::Tensor t = at::empty(
        at::IntArrayRef(spec.dims.data(), spec.dims.size()),
        at::TensorOptions(scalar_type(spec.dtype)).device(spec.host ? c10::Device(c10::kCPU) : device_),
        spec.channels_last && spec.dims.size() == 4 ? std::optional(c10::MemoryFormat::ChannelsLast) : std::nullopt);
    values_.fill(t, slot, spec);
    if (spec.requires_grad && is_float(spec.dtype)) t.set_requires_grad(true);
    if (spec.parameter && t.requires_grad()) trained_.push_back(slot);
    slots_[slot.at()] = std::move(t);
  }

  void call(std::string_view op, std::span<const Arg> args, std::span<const SlotId> outputs,
            const Site& site) override {
    if (op == "aten::_cudnn_rnn_flatten_weight" && !device_.is_cuda()) return;  // flatten_parameters() needs cuDNN
    const Report::Place before = report_.place;
    report_.place.op = op;
    report_.place.site = site.text;
    report_.place.module = programs_modules(site.module);
    std::vector<IValue> results = dispatch_.call(op, args, slots_);
    for (std::size_t i = 0; i < results.size() && i < outputs.size(); ++i) {
      if (!outputs[i].valid()) continue;
      if (job_.check) check_shape(outputs[i], results[i]);
      if (!job_.results.empty()) keep_result(outputs[i], results[i]);
      slots_[outputs[i].at()] = std::move(results[i]);
    }
    report_.place = before;
  }

  void assign(SlotId to, SlotId from) override { slots_[to.at()] = slots_[from.at()]; }
  void drop(SlotId slot) override { slots_[slot.at()] = IValue(); }
  bool holds(SlotId slot) const override { return !slots_[slot.at()].isNone(); }
  Dims sizes(SlotId slot) const override { return dims_of(tensor(slot)); }
  DType dtype(SlotId slot) const override { return dtype_of(tensor(slot).scalar_type()); }

  void backward(SlotId loss) override {
    if (job_.check) report_.loss(report_.place.step, tensor(loss).item().toDouble());
    torch::autograd::backward({tensor(loss)}, {});
    if (job_.check) check_gradients();
  }
  bool has_grad(SlotId parameter) const override { return tensor(parameter).grad().defined(); }
  void load_grad(SlotId to, SlotId parameter) override { slots_[to.at()] = tensor(parameter).grad(); }
  void clear_grad(SlotId parameter) override { tensor(parameter).mutable_grad().reset(); }

  void set_grad_enabled(bool on) override { c10::GradMode::set_enabled(on); }
  void enter_autocast(DType dtype) override { push_autocast({true, scalar_type(dtype)}); }
  void leave_autocast() override { pop_autocast(); }
  void suspend_autocast() override { push_autocast({false, autocast_.state().dtype}); }
  void resume_autocast() override { pop_autocast(); }

  void enter_checkpoint(const CheckpointSegment& segment) override {
    Entered entered;
    const CheckpointPlace place{slots_, autocast_, device_};
    if (c10::GradMode::is_enabled() && segment.reentrant) {
      entered.reentrant = std::make_shared<ReentrantSegment>(place, segment);
      c10::GradMode::set_enabled(false);
    } else if (c10::GradMode::is_enabled()) {
      entered.frame = std::make_shared<CheckpointFrame>(place, segment);
      entered.frame->outer = CheckpointFrame::activate(entered.frame);
    }
    entered_.push_back(std::move(entered));
  }
  void leave_checkpoint() override {
    const Entered entered = std::move(entered_.back());
    entered_.pop_back();
    if (entered.frame) CheckpointFrame::activate(std::exchange(entered.frame->outer, nullptr));
    if (!entered.reentrant) return;
    c10::GradMode::set_enabled(true);
    entered.reentrant->close(entered.reentrant);
  }

  void phase(Phase phase, int step) override {
    end_phase();
    report_.place = {.phase = phase, .step = step, .op = {}, .site = {}, .module = {}};
    memory_.reset_peaks();
    begin_ = Clock::now();
  }
  void purpose(Category) override {}

  void finish() {
    end_phase();
    if (!job_.results.empty()) write_safetensors(job_.results, results_);
  }
  /// Peaks of the phase that is at work, also of one that failed.
  void end_phase() {
    if (!begin_) return;
    memory_.synchronize();
    const std::chrono::duration<double> seconds = Clock::now() - *begin_;
    report_.phase_ended(memory_.statistics(), memory_.process_bytes(), seconds.count());
    begin_.reset();
  }

 private:
  /// A segment whose calls are running.
  struct Entered {
    std::shared_ptr<CheckpointFrame> frame;
    std::shared_ptr<ReentrantSegment> reentrant;
  };

  const at::Tensor& tensor(SlotId slot) const { return slots_[slot.at()].toTensor(); }

  std::string_view programs_modules(ModuleId m) const {
    return m.valid() ? job_.programs[job_.order[static_cast<std::size_t>(report_.place.step) % job_.order.size()]]
                           ->module_path(m)
                     : std::string_view();
  }

  void push_autocast(Autocast::State wanted) {
    before_autocast_.push_back(autocast_.state());
    autocast_.enter(wanted);
  }
  void pop_autocast() {
    autocast_.leave(before_autocast_.back());
    before_autocast_.pop_back();
  }

  void check_shape(SlotId slot, const IValue& value) {
    const std::size_t program = job_.order[static_cast<std::size_t>(report_.place.step) % job_.order.size()];
    if (program >= job_.shapes.size() || slot.at() >= job_.shapes[program].size() || !value.isTensor()) return;
    const auto& expected = job_.shapes[program][slot.at()];
    const at::Tensor& t = value.toTensor();
    if (expected && t.defined() && dims_of(t) != *expected)
      report_.shape_differs(*expected, dims_of(t), job_.programs[program]->slot_names[slot.at()]);
  }
  void keep_result(SlotId slot, const IValue& value) {
    const auto found = outputs_.find(slot);
    if (found != outputs_.end() && value.isTensor()) results_[found->second] = stored(value.toTensor());
  }
  void check_gradients() {
    std::int64_t tensors = 0, wrong = 0;
    for (const SlotId s : trained_) {
      const at::Tensor& grad = tensor(s).grad();
      if (!grad.defined()) continue;
      ++tensors;
      // A sum of absolute values is finite when every value is (float64: no overflow).
      if (!std::isfinite(grad.abs().sum(c10::ScalarType::Double).item().toDouble())) ++wrong;
    }
    report_.gradients(report_.place.step, tensors, wrong);
  }

  const Job& job_;
  Device& memory_;
  Report& report_;
  c10::Device device_;
  Dispatch dispatch_;
  Autocast autocast_;
  Values values_;
  std::vector<IValue> slots_;
  std::vector<Entered> entered_;
  std::vector<Autocast::State> before_autocast_;
  std::vector<SlotId> trained_;
  std::unordered_map<SlotId, std::string> outputs_;
  StoredTensors results_;
  std::optional<Clock::time_point> begin_;
};

}  // namespace

void run_job(const Job& job, Device& device, Report& report) {
  if (job.memory.count() > 0) device.cap(job.memory);
  TorchMachine machine(job, device, report);
  std::vector<const Program*> order;
  for (const auto i : job.order) order.push_back(job.programs[i].get());
  Diagnostics diagnostics;
  try {
    run_session(machine, order, job.scenario, job.steps, diagnostics);
    machine.finish();
  } catch (...) {
    const Report::Place at = report.place;
    machine.end_phase();
    report.place = at;
    throw;
  }
}

}  // namespace headroom::runner
