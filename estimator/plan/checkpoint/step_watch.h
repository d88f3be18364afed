// StepWatch: a shadow machine with notes on one step's last forward pass and the backward after it.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/plan/checkpoint/call_cost.h"
#include "estimator/shadow/shadow.h"

namespace headroom {

class StepWatch final : public Machine {
 public:
  /// All must outlive this. While there is a log the machine repeats no call that it knows: only `step` has one.
  StepWatch(shadow::Shadow& machine, const Scenario& scenario, const Program& program, int step, shadow::StepLog& log);

  /// Places in the trace, and sequence numbers, when a call of the forward pass began: the program's calls, then the
  /// loss' first.
  struct Begin {
    shadow::Recorder::Mark at;
    std::uint64_t node = 0;  ///< the last before
  };
  std::vector<Begin> begins;
  Begin backward_begin;
  std::size_t backward_end = 0;                   ///< event
  std::vector<std::vector<std::int32_t>> reads;   ///< by call of the program: blocks of the trace
  std::vector<std::vector<std::int32_t>> writes;  ///< in place
  std::vector<std::vector<std::int32_t>> makes;   ///< what its result slots hold
  std::vector<CallCost> costs;
  CallCost of_loss;

  void reserve_slots(std::size_t count) override { m_.reserve_slots(count); }
  void create(SlotId slot, const TensorSpec& spec) override { m_.create(slot, spec); }
  void call(std::string_view op, std::span<const Arg> args, std::span<const SlotId> outputs, const Site& site) override;
  void assign(SlotId to, SlotId from) override { m_.assign(to, from); }
  void drop(SlotId slot) override { m_.drop(slot); }
  bool holds(SlotId slot) const override { return m_.holds(slot); }
  Dims sizes(SlotId slot) const override { return m_.sizes(slot); }
  DType dtype(SlotId slot) const override { return m_.dtype(slot); }
  void backward(SlotId loss) override;
  bool has_grad(SlotId parameter) const override { return m_.has_grad(parameter); }
  void load_grad(SlotId to, SlotId parameter) override { m_.load_grad(to, parameter); }
  void clear_grad(SlotId parameter) override { m_.clear_grad(parameter); }
  void set_grad_enabled(bool on) override { m_.set_grad_enabled(on); }
  void enter_autocast(DType dtype) override { m_.enter_autocast(dtype); }
  void leave_autocast() override { m_.leave_autocast(); }
  void suspend_autocast() override { m_.suspend_autocast(); }
  void resume_autocast() override { m_.resume_autocast(); }
  void enter_checkpoint(const CheckpointSegment& segment) override { m_.enter_checkpoint(segment); }
  void leave_checkpoint() override { m_.leave_checkpoint(); }
  void phase(Phase phase, int step) override;
  bool repeat_step(int step) override { return step >= step_ && m_.repeat_step(step); }
  void purpose(Category category) override { m_.purpose(category); }

 private:
  void note_tensors(const Arg& a, std::vector<CostTensor>& shapes, std::vector<std::int32_t>& blocks) const;
  void note_tensor(SlotId slot, std::vector<CostTensor>& shapes, std::vector<std::int32_t>& blocks) const;

  shadow::Shadow& m_;
  const Scenario& scenario_;
  const Program& program_;
  const int step_;
  shadow::StepLog& log_;
  bool watching_ = false;
};

}  // namespace headroom
