// StepProfile: one steady training step without checkpoints, taken apart into what holds for every placement of
// checkpoints: who makes, reads, saves and writes each block, how long variables keep it, and what else lives at every
// moment of forward and backward. From two runs on the shadow machine: one that keeps everything, one that is a single
// segment, whose forward pass keeps what variables keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "estimator/plan/checkpoint/call_cost.h"
#include "estimator/plan/checkpoint/kept_operators.h"
#include "estimator/plan/shaped_programs.h"
#include "estimator/plan/step_trace.h"
#include "estimator/program/scenario.h"
#include "estimator/shadow/trace.h"

namespace headroom {

/// Bytes are rounded to the allocator's 512. Call `calls` stands for the loss: what runs between the model and
/// backward.
struct StepProfile {
  /// A block that the forward pass makes.
  struct Block {
    std::int64_t bytes = 0;
    std::size_t made = 0;     ///< call
    bool variable = false;    ///< a slot holds it, or a view of it
    bool outlives = false;    ///< variables keep it through backward
    std::size_t written = 0;  ///< 1 + the last call that writes it in place; 0: none but its maker
    std::uint8_t kept = 0;    ///< bit k: a result of an operator of keeps[k]
  };
  /// An allocation, or the end of the last variable that holds a block; in the order of the forward pass.
  struct Event {
    std::int32_t block = -1;  ///< index into blocks; -1: something from before
    bool made = false;
    std::int64_t live = 0;  ///< afterwards, when nothing is saved
  };
  /// A node of backward, in the order of the forward pass.
  struct Node {
    std::uint32_t saves_begin = 0, saves_end = 0;  ///< into saves
    bool runs = false;
    /// Most that lives besides what is saved: while it has its saved tensors; after its locals are gone, before they
    /// are released; after that, until the next node.
    std::int64_t begin = 0, applying = 0, leaving = 0, after = 0;
  };
  struct Call {
    std::uint32_t event = 0, node = 0;  ///< first
    std::vector<std::int32_t> reads;    ///< blocks, each once
    std::size_t made_at_last_save = 0;  ///< blocks made when its last node saves its last tensor
    std::int64_t work = 0;              ///< forward, as call_cost.h has it
    std::int64_t work_beside = 0;       ///< of it, what runs again even where its results are kept
    std::int64_t work_as_last = 0;      ///< when a rerun stops at its last save: nothing, where that comes first
    std::size_t level = 0;              ///< modules around the point before it that have a forward of their own
    std::size_t depth = 0;              ///< modules around the call itself
    std::uint8_t kept = 0;              ///< bit k: what it makes keeps[k] keeps
  };

  std::size_t calls = 0;
  std::vector<Block> blocks;
  std::vector<Event> events;
  std::vector<std::int32_t> saves;  ///< blocks by node; of before: -1
  std::vector<Node> nodes;
  std::vector<Call> call;          ///< calls + 2: the loss, and the end
  std::int64_t live_at_start = 0;  ///< when the first call begins
  std::int64_t other_peak = 0;     ///< of all that is neither forward nor backward
  CallCost cost;                   ///< of the whole forward pass and the loss, with their backward
  bool autocast = false;           ///< segments share its cache of cast weights
  std::vector<std::vector<std::string>>
      keeps;  ///< operators whose results a selective segment may keep: at most 8 lists
};

/// cuBLASLt's workspace of backward's thread, which the first product with a bias that runs again asks for and which
/// stays: part of no profile and no placement's peak. `workspace`: its bytes.
bool is_rerun_workspace(const shadow::Trace& trace, std::int32_t block, Bytes workspace);

/// Throws Error(not_modelled) when the step cannot be taken apart. `whole`, where given: what the scenario's steps ask
/// of the allocator without checkpoints; none for a single step.
StepProfile step_profile(const ShapedPrograms& programs, const Scenario& scenario,
                         std::vector<std::vector<std::string>> keeps = kept_operators(),
                         std::optional<StepTrace>* whole = nullptr);

}  // namespace headroom
