// What the shadow machine and the allocator say of a probe, and what the GPU showed: peak and kept bytes.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/shadow/trace.h"

namespace headroom::peaks {

/// "fwd_peak", "bwd_left", …: bytes.
using Figures = std::map<std::string, std::int64_t>;

struct Row {
  std::string name;
  Figures measured, predicted;
};

/// A stretch of a trace between two phase events: against its start, the most and what is left.
struct Window {
  std::int64_t peak = 0, left = 0;
};
/// The trace on PyTorch's allocator; its cache is emptied where the stretches of these numbers begin.
std::vector<Window> windows(const shadow::Trace& trace, const std::vector<std::size_t>& emptied = {});

/// A section of the measuring program, from its ATen calls (make-cases says how they are written).
std::vector<Row> of_section(const nlohmann::json& section);
/// "ckpt none", "ckpt reentrant", "ckpt nonreentrant": eight MLP blocks of width 1024, each checkpointed.
Figures of_checkpoints(std::string_view name);
/// Two steps over 16 parameters of 1024 × 1024, float32, as the step writes the optimizer; none for those that it has
/// not ("optim nadam").
Figures of_optimizer(std::string_view name);

}  // namespace headroom::peaks
