// Scenario: every knob of one question, as one value. Echoed whole in the JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.h"
#include "estimator/base/dtype.h"
#include "estimator/program/checkpoint_plan.h"

namespace headroom {

enum class Task : std::uint8_t { train, infer };
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, amp_fp16, amp_bf16 };
enum class CastOn : std::uint8_t { cpu, gpu };
enum class OptimizerKind : std::uint8_t {
  sgd,
  sgd_momentum,
  adam,
  adamw,
  adagrad,
  rmsprop,
  adadelta,
  adafactor,
  lion,
  muon,
  adamw8bit,
  none
};
enum class OptimizerImpl : std::uint8_t { foreach, fused, for_loop };
enum class LossKind : std::uint8_t { cross_entropy, causal_lm, mse, sum, none };
enum class ZeroGrad : std::uint8_t { after_step, before_forward, before_backward };
enum class OutputsKept : std::uint8_t { keep, drop };
/// What the loop keeps by mistake: `losses.append(loss)`, attached to its graph.
enum class Leak : std::uint8_t { none, loss };
enum class CheckpointKind : std::uint8_t { none, blocks, plan };
enum class AttentionBackend : std::uint8_t { automatic, math, efficient, flash, cudnn };
enum class Parallel : std::uint8_t { none, ddp, zero1, zero2, fsdp2 };

/// The card. `total_bytes` is what CUDA reports as total memory; 0: no card named.
struct Device {
  std::string name;  ///< "h200", "" when only --memory was given
  Bytes total_bytes{};
  int compute_major = 9;
  int compute_minor = 0;
  int sm_count = 132;  ///< decides the reduction kernels' buffers
  int threads_per_sm = 2048;
  std::string generation = "hopper";

  bool operator==(const Device&) const = default;
};

struct Scenario {
  Task task = Task::train;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> sequence;
  std::map<std::string, std::int64_t, std::less<>> dims;
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;
  Precision precision = Precision::fp32;
  CastOn cast_on = CastOn::cpu;
  OptimizerKind optimizer = OptimizerKind::adamw;
  OptimizerImpl optimizer_impl = OptimizerImpl::foreach;
  LossKind loss = LossKind::cross_entropy;
  std::int64_t accumulate = 1;
  std::int64_t skipped_steps = 0;  ///< of amp-fp16: the first ones, in which GradScaler finds overflows
  bool clip_grad = false;
  bool keep_grads = false;
  ZeroGrad zero_grad = ZeroGrad::after_step;
  std::optional<OutputsKept> outputs;  ///< not given: kept by a training loop, dropped by inference
  Leak leak = Leak::none;
  CheckpointKind checkpoint = CheckpointKind::none;
  CheckpointPlan checkpoint_plan;  ///< of CheckpointKind::plan
  AttentionBackend attention = AttentionBackend::automatic;
  bool channels_last = false;
  std::vector<std::string> freeze;
  Parallel parallel = Parallel::none;
  std::int64_t world_size = 1;
  std::string alloc_conf;
  std::string torch_version = "2.11";
  Device device;
  std::string profile;
  std::vector<std::int64_t> sequences;  ///< --seqs: one length a step
  std::int64_t steps = 0;               ///< 0: until the state is steady

  bool keeps_outputs() const {
    return outputs.value_or(training() ? OutputsKept::keep : OutputsKept::drop) == OutputsKept::keep;
  }
  bool training() const { return task == Task::train; }
  /// dtype of autocast regions; undefined without AMP.
  DType autocast_dtype() const {
    return precision == Precision::amp_fp16   ? DType::f16
           : precision == Precision::amp_bf16 ? DType::bf16
                                              : DType::undefined;
  }
  /// dtype the module was cast to; undefined: as stored.
  DType module_dtype() const {
    return precision == Precision::fp16 ? DType::f16 : precision == Precision::bf16 ? DType::bf16 : DType::undefined;
  }
  bool operator==(const Scenario&) const = default;
};

}  // namespace headroom
