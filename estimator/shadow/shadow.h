// Shadow: eager PyTorch without the numbers. The machine that turns a step into a Trace.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "estimator/base/diagnostic.h"
#include "estimator/program/scenario.h"
#include "estimator/shadow/autograd.h"
#include "estimator/shadow/effect.h"
#include "estimator/shadow/first_pass.h"
#include "estimator/shadow/operator.h"
#include "estimator/shadow/recorder.h"
#include "estimator/shadow/signature.h"
#include "estimator/shadow/steady.h"
#include "estimator/shadow/tables/aten_table.h"
#include "estimator/shadow/tables/evaluate.h"
#include "estimator/shadow/trace.h"
#include "estimator/shadow/value.h"
#include "estimator/step/machine.h"

namespace headroom::shadow {

class ConvWorkspaces;

/// What the card and the libraries decide. Built from Scenario::device and a Profile.
struct DeviceFacts {
  int sm_count = 132;
  int threads_per_sm = 2048;
  int compute_major = 9;
  int compute_minor = 0;
  Bytes cublas_workspace{32 * MiB};   ///< per thread that ran a GEMM: 32 MiB on Hopper, 8 MiB + 128 KiB elsewhere
  Bytes cublaslt_workspace{1 * MiB};  ///< one a thread, once a linear with bias ran there (2.11)
  AttentionBackend attention = AttentionBackend::automatic;
  const ConvWorkspaces* convolutions =
      nullptr;  ///< measured on this card; null: the built-in table of this kind of card, else the rule
};

/// autocast's weight cache. Real PyTorch frees it in the order of a hash map of addresses; here in order of insertion.
struct CastCache {
  std::unordered_map<const TensorImpl*, std::size_t> places;
  std::vector<Tensor> casts;
};

class CheckpointFrame;
class ReentrantNode;
struct CallPlan;

/// Adds to a counter for a scope.
class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

class Shadow final : public Machine, private FormulaHost {
 public:
  Shadow(const aten::Table& table, const DeviceFacts& device);
  ~Shadow() override;

  // ---- Machine -----------------------------------------------------------------------------------------------------
  void reserve_slots(std::size_t count) override;
  void create(SlotId slot, const TensorSpec& spec) override;
  void call(std::string_view op, std::span<const Arg> args, std::span<const SlotId> outputs, const Site& site) override;
  void assign(SlotId to, SlotId from) override;
  void drop(SlotId slot) override;
  bool holds(SlotId slot) const override;
  Dims sizes(SlotId slot) const override;
  DType dtype(SlotId slot) const override;
  void backward(SlotId loss) override;
  bool has_grad(SlotId parameter) const override;
  void load_grad(SlotId to, SlotId parameter) override;
  void clear_grad(SlotId parameter) override;
  void set_grad_enabled(bool on) override { grad_enabled_ = on; }
  void enter_autocast(DType dtype) override;
  void leave_autocast() override;
  void suspend_autocast() override;
  void resume_autocast() override;
  void enter_checkpoint(const CheckpointSegment& segment) override;
  void leave_checkpoint() override;
  void phase(Phase phase, int step) override;
  void begin_pass(int step) override;
  void end_pass() override;
  bool repeat_pass(int step) override;
  bool repeat_step(int step) override;
  void purpose(Category category) override { recorder_.purpose = category; }

  /// The finished trace. Everything still held stays held; call once.
  Trace take_trace();
  Diagnostics diagnostics;

  // ---- for rules: calling operators --------------------------------------------------------------------------------

  /// Runs an operator by full name, as C++ code inside PyTorch calls `at::add(...)`: autocast and autograd apply unless
  /// a kernel is at work.
  Outputs dispatch(std::string_view op, std::span<const Value> args);
  template <class... A>
  Outputs all(std::string_view op, A&&... args) {
    const std::array<Value, sizeof...(A)> values{Value(std::forward<A>(args))...};
    return dispatch(op, values);
  }
  /// The same for an operator with one result.
  template <class... A>
  Tensor one(std::string_view op, A&&... args) {
    Outputs out = all(op, std::forward<A>(args)...);
    return std::move(out[0]).take_tensor();
  }

  // ---- for kernels: making tensors ---------------------------------------------------------------------------------

  Tensor empty(const Dims& sizes, DType dtype);
  Tensor empty_strided(const Dims& sizes, const Dims& strides, DType dtype);
  /// preserve_format: dense strides are kept, others become dense in the same order.
  Tensor empty_like(const Tensor& t, DType dtype = DType::undefined);
  Tensor empty_like_contiguous(const Tensor& t, DType dtype = DType::undefined);
  /// A tensor on the CPU: no device bytes.
  Tensor host_tensor(const Dims& sizes, DType dtype);
  /// Another tensor on the same storage (a view, or the result of an in-place call).
  Tensor alias(const Tensor& t, const Dims& sizes, const Dims& strides, std::int64_t offset);
  Tensor alias(const Tensor& t) { return alias(t, t->sizes, t->strides, t->offset); }
  /// `t` itself when contiguous, else a contiguous copy (below autograd).
  Tensor contiguous(const Tensor& t);
  /// A block without a tensor: a kernel's scratch.
  Ref<Storage> scratch(Bytes bytes);
  /// A library's workspace (cuBLAS, cuDNN).
  Ref<Storage> workspace(Bytes bytes);
  /// Takes this thread's cuBLAS workspace the first time a GEMM runs on it; it stays for the life of the process.
  void use_cublas();
  void use_cublaslt();
  /// cuDNN's dropout state: once a process, when a recurrent network trains with dropout between its layers (measured
  /// on an H200: 24 bytes a resident thread).
  void use_dropout_state();

  const DeviceFacts& device() const { return device_; }
  const aten::Table& table() const { return table_; }
  Recorder& recorder() { return recorder_; }
  bool grad_enabled() const { return grad_enabled_ && below_autograd_ == 0; }
  bool below_autograd() const { return below_autograd_ > 0; }
  DType autocast_dtype() const { return autocast_suspended_ ? DType::undefined : autocast_; }
  /// An operator went the generic way: named once, with what the figure may be short by.
  void note_generic(std::string_view op, Bytes bound);
  /// A library workspace that was not measured on this card may be larger by `bound`.
  void note_workspace(Bytes bound);
  Evaluator& formulas() { return evaluator_; }

  /// An operator as the dispatcher knows it.
  struct Entry {
    std::string name;                        ///< "aten::add.Tensor"
    const aten::OpSchema* schema = nullptr;  ///< in the torch version's table
    const Operator* op = nullptr;            ///< our rule; null: the generic one
    std::int32_t text = -1;                  ///< the name in the trace
    std::vector<Value> defaults;             ///< of the schema's arguments
  };
  const Entry& entry(std::string_view op);
  Outputs dispatch(const Entry& e, std::span<const Value> args);

  std::uint64_t next_sequence() { return ++sequence_; }
  std::uint64_t last_sequence() const { return sequence_; }
  const Value& value(SlotId slot) const { return slots_[slot.at()]; }

  /// What is set around a call, for its signature.
  std::uint64_t mode() const;
  /// Runs `work`, or repeats what it did when it ran with this signature. A log wants to see every call.
  template <class F>
  Outputs repeatable(const Signature& s, F&& work) {
    return s.complete() && !recorder_.log ? known_[s].run(s, recorder_, [&] { return worked_out(work); }) : work();
  }

 private:
  friend class SavedVariable;
  friend class CheckpointFrame;
  friend class ReentrantNode;
  friend class RerunScope;
  friend void run_backward(Shadow&, std::span<const Tensor>, std::vector<Tensor>);

  using Arguments = BoundArguments;

  Outputs call(const aten::OpSchema& op, std::span<const Value> args) override;

  const Entry& named_entry(std::string_view op);
  /// Runs an operator with all its arguments.
  Outputs run(const Entry& e, std::span<const Value> args);
  Outputs run_autograd(const Entry& e, std::span<const Value> args);
  Outputs run_kernel(const Entry& e, std::span<const Value> args);
  Ref<CallPlan> plan_of(const Signature& s, const Entry& e, std::span<const Value> args);
  /// Calls inside `work` are part of its effect and need none of their own.
  template <class F>
  Outputs worked_out(F&& work) {
    const Deeper inside(inside_effect_);
    return work();
  }
  Outputs run_generic(const Entry& e, std::span<const Value> args);
  void set_history(const Entry& e, std::span<const Value> args, const Outputs& outputs, Ref<Node> node);
  void cast_arguments(const Entry& e, Arguments& args);
  Portrait portrait();
  /// What libraries took for the life of the process.
  std::array<const Ref<Storage>*, 5> workspaces() const {
    return {&cublas_[0], &cublas_[1], &cublaslt_[0], &cublaslt_[1], &dropout_state_};
  }
  Value cached_cast(const Value& v, DType to);
  Value value_of(const Arg& a) const;

  const aten::Table& table_;
  DeviceFacts device_;
  Trace trace_;
  Recorder recorder_;
  Steady steady_{recorder_};
  std::vector<Value> slots_;
  std::optional<FirstPass> first_pass_;
  std::unordered_map<std::string_view, std::unique_ptr<Entry>> entries_;  ///< keys: the entries' names
  std::array<const Entry*, 256> recent_entries_{};                        ///< by where the caller's name lies
  BySignature<Ref<CallPlan>> plans_;
  BySignature<Repeatable> known_;
  int inside_effect_ = 0;
  std::unordered_map<const aten::OpSchema*, const Entry*> by_schema_;
  Evaluator evaluator_;

  bool grad_enabled_ = true;
  int below_autograd_ = 0;
  bool on_autograd_thread_ = false;
  std::uint64_t sequence_ = 0;
  std::uint32_t visits_ = 0;           ///< backward runs so far
  std::uint32_t outermost_visit_ = 0;  ///< of the backward that is at work, others may run inside it

  DType autocast_ = DType::undefined;
  int autocast_depth_ = 0;
  int autocast_suspended_ = 0;
  CastCache cast_cache_;

  std::shared_ptr<CheckpointFrame> checkpoint_;  ///< packing (forward or rerun) while set
  /// A segment that was entered and not yet left: its frame or its node; neither where no gradients are recorded.
  struct Entered {
    std::shared_ptr<CheckpointFrame> frame;
    Ref<ReentrantNode> node;
  };
  std::vector<Entered> entered_;
  std::array<Ref<Storage>, 2> cublas_, cublaslt_;
  Ref<Storage> dropout_state_;
  std::vector<std::pair<std::string, std::size_t>> noted_;  ///< generic operators, and their diagnostic
  Bytes unmeasured_workspace_;
  std::size_t workspace_note_ = 0;  ///< place of its diagnostic + 1
};

}  // namespace headroom::shadow
