// Replays a recorded case on the shadow machine: a few ATen calls on given inputs, and torch.autograd.grad of the
// result.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "estimator/base/dims.h"
#include "estimator/shadow/shadow.h"

namespace headroom::probes {

/// A block made (its bytes), or freed (its place among the blocks of the same pass, -1: older).
struct Event {
  bool made = false;
  std::int64_t number = 0;
  friend bool operator==(const Event&, const Event&) = default;
};
using Events = std::vector<Event>;

struct Passes {
  Events forward, backward;
  friend bool operator==(const Passes&, const Passes&) = default;
};

/// The card of the recordings; its GEMM workspaces were taken before.
shadow::DeviceFacts recording_card();
/// Runs one of a case's "calls"; `slots` grows by what it makes, and values are let go as the call says.
void run_call(shadow::Shadow& m, const nlohmann::json& call, std::vector<shadow::Value>& slots);
/// The parts of it: a result into its slot, and what is let go afterwards.
void store(shadow::Value value, std::size_t slot, std::vector<shadow::Value>& slots);
void let_go(const nlohmann::json& call, std::vector<shadow::Value>& slots);

/// What the allocator of a GPU showed.
Passes recorded(const nlohmann::json& probe);
/// What the shadow machine makes of the same calls. Throws what the machine throws.
Passes replayed(const nlohmann::json& probe);
/// "+4096 +512 -#0".
std::string text_of(const Events& events);

}  // namespace headroom::probes
