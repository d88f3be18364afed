// Machine: what a training step runs on. The step is written once against this interface; the shadow machine (no
// numbers) and the torch machine (libtorch, in the runner) execute it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/program/program.h"
#include "estimator/program/scenario.h"

namespace headroom {

/// What a block of memory is for (design, section 1). Rounding and fragmentation are not events; report adds them.
enum class Category : std::uint8_t {
  weights,
  buffers,
  gradients,
  optimizer_state,
  activations,  ///< saved for backward
  forward_temporaries,
  backward_temporaries,
  optimizer_temporaries,
  workspaces,
  inputs,
};
inline constexpr int category_count = 10;
/// "weights", "optimizer_state": the JSON's keys.
std::string_view name_of(Category c);

enum class Phase : std::uint8_t { setup, forward, backward, optimizer, zero_grad };
std::string_view name_of(Phase p);

/// A tensor made outside the model's program.
struct TensorSpec {
  Dims dims;
  DType dtype = DType::f32;
  Category category = Category::inputs;
  bool host = false;  ///< lives on the CPU
  bool requires_grad = false;
  bool parameter = false;      ///< an nn.Parameter (autocast caches its cast)
  bool channels_last = false;  ///< NHWC strides (4-D only; others ignore it)
  std::string_view name;       ///< for people; copied
};

/// Where a call comes from, for people.
struct Site {
  ModuleId module;
  std::string_view text;
};

/// A stretch of the forward pass that is run again in backward (torch.utils.checkpoint).
struct CheckpointSegment {
  bool reentrant = false;
  std::vector<std::string>
      save;                     ///< selective: operators ("aten::mm") whose results the forward run keeps for the rerun
  Slots inputs;                 ///< values from outside that the segment reads (arguments and closures)
  Slots outputs;                ///< values made inside that are read outside
  Slots inner;                  ///< every slot the segment writes
  std::function<void()> rerun;  ///< executes the segment's calls on the same machine
};

class Machine {
 public:
  virtual ~Machine() = default;

  /// Slots 0 … count-1 exist afterwards (all empty). The step adds its own above the program's.
  virtual void reserve_slots(std::size_t count) = 0;

  virtual void create(SlotId slot, const TensorSpec& spec) = 0;
  /// Runs one ATen call by name ("aten::add.Tensor") with the argument forms of Program; Tensor[] returns flattened.
  /// Autograd, autocast and the grad mode act on it as on a call from Python.
  virtual void call(std::string_view op, std::span<const Arg> args, std::span<const SlotId> outputs,
                    const Site& site) = 0;
  /// `to = from`: one more owner of the same tensor; what `to` held goes.
  virtual void assign(SlotId to, SlotId from) = 0;
  /// The variable goes out of scope. Dropping an empty slot does nothing.
  virtual void drop(SlotId slot) = 0;
  virtual bool holds(SlotId slot) const = 0;
  /// Sizes and dtype of what the slot holds (program outputs for the loss' target).
  virtual Dims sizes(SlotId slot) const = 0;
  virtual DType dtype(SlotId slot) const = 0;

  /// loss.backward(); the root gradient (ones_like) dies when it returns.
  virtual void backward(SlotId loss) = 0;
  virtual bool has_grad(SlotId parameter) const = 0;
  /// `to = parameter.grad`.
  virtual void load_grad(SlotId to, SlotId parameter) = 0;
  /// `parameter.grad = None`.
  virtual void clear_grad(SlotId parameter) = 0;

  virtual void set_grad_enabled(bool on) = 0;
  /// `with torch.autocast("cuda", dtype=dtype)`; leaving the outermost region clears the weight cache.
  virtual void enter_autocast(DType dtype) = 0;
  virtual void leave_autocast() = 0;
  /// torch.autocast(enabled=False) inside a region: nested, balanced.
  virtual void suspend_autocast() = 0;
  virtual void resume_autocast() = 0;

  /// `segment` outlives the graph. Segments may be entered inside each other, in a rerun as well.
  virtual void enter_checkpoint(const CheckpointSegment& segment) = 0;
  virtual void leave_checkpoint() = 0;

  /// A pass: what a step does before its optimizer (forward, loss, backward, once for each micro-batch).
  virtual void begin_pass(int step) { static_cast<void>(step); }
  virtual void end_pass() {}
  /// Instead of a pass of the program that the last one ran: true when the machine can tell what it would do, and has
  /// counted it as done.
  virtual bool repeat_pass(int step) {
    static_cast<void>(step);
    return false;
  }
  /// Between two steps that run the same program: true when the machine can tell that step `step` would do what the
  /// last one did, and has counted it as done.
  virtual bool repeat_step(int step) {
    static_cast<void>(step);
    return false;
  }

  /// Statistics from here on belong to this phase of this step (counted from 0).
  virtual void phase(Phase phase, int step) = 0;
  /// What tensors created by the following calls are for (until the next call of this).
  virtual void purpose(Category category) = 0;
};

}  // namespace headroom
