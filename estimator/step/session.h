// Session: one process as a person writes it: the model moved to the device, batches, the training loop, one step after
// another. Written once against Machine; it does not know which machine runs it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.h"
#include "estimator/step/machine.h"

namespace headroom {

class ForwardPass;
class Optimizer;

class Session {
 public:
  /// `programs`: one per distinct batch shape (--seqs); the first is the one the model is built from. They and the
  /// scenario must outlive the session.
  Session(Machine& machine, std::span<const Program* const> programs, const Scenario& scenario);
  ~Session();

  /// model.to(device), casts, optimizer construction.
  void setup();
  /// Step `index` (from 0) on a batch of `program`'s shapes.
  void step(int index, const Program& program);

  Diagnostics diagnostics;

 private:
  void move_to_device();
  void make_batch(const Program& program);
  void drop_batch();
  void forward(const Program& program);
  SlotId loss_of_output(const Program& program);
  void pass(int index, const Program& program);
  void training_pass(int index, const Program& program);
  void inference_pass(const Program& program);
  void update(int index);
  void drop_outputs();
  bool scales() const { return scenario_.precision == Precision::amp_fp16; }  ///< by GradScaler
  void clip_gradients();
  void zero_gradients();
  SlotId fresh();
  void call(std::string_view op, const std::vector<Arg>& args, const Slots& outputs, std::string_view text);

  Machine& m_;
  const Scenario& scenario_;
  const Program& model_;
  std::size_t next_slot_ = 0;
  Slots parameters_;  ///< model_'s, same order as model_.parameters
  std::vector<bool> trainable_;
  std::unique_ptr<Optimizer> optimizer_;
  std::map<const Program*, std::unique_ptr<ForwardPass>> forwards_;
  const Program* batch_of_ = nullptr;  ///< whose batch is on the device
  const Program* passed_ = nullptr;    ///< whose pass was the last
  SlotId target_;
  Slots kept_outputs_;  ///< `out` of the loop
  Slots leaked_;        ///< --leak loss: the list that every loss is appended to
  SlotId scale_, growth_tracker_;
};

/// Parameters that --freeze stops: matched against their paths. Throws Error(usage) when a glob matches nothing.
std::vector<bool> trainable_parameters(const Program& program, const Scenario& scenario);

/// Runs `steps` steps on the machine (programs[i % n] at step i when there are several) after the setup.
void run_session(Machine& machine, std::span<const Program* const> programs, const Scenario& scenario, int steps,
                 Diagnostics& diagnostics);

}  // namespace headroom
