// Trace: every alloc and free of device memory in the order in which eager PyTorch asks for them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.h"
#include "estimator/program/program.h"
#include "estimator/step/machine.h"

namespace headroom::shadow {

/// A request for device memory. Which call made it, and what for.
struct TraceBlock {
  Bytes bytes;
  Category category = Category::forward_temporaries;  ///< at birth
  Phase phase = Phase::setup;
  std::int32_t step = 0;
  ModuleId module;
  std::int32_t site = -1;  ///< index into Trace::texts: node or step of the optimizer
  std::int32_t op = -1;    ///< index into Trace::texts: ATen operator at work; -1 for created tensors
  std::int32_t name = -1;  ///< index into Trace::texts: parameter or input; -1 for unnamed
};

struct TraceEvent {
  enum class Kind : std::uint8_t {
    alloc,
    free,
    becomes,  ///< the block's category is now `category` (saved for backward, released, a gradient)
    phase,    ///< statistics of a new phase begin; `phase` and `index` (the step) say which
    cudnn,    ///< its first convolution: its kernels are loaded
  };
  bool of_block() const { return kind < Kind::phase; }
  Kind kind = Kind::alloc;
  Category category = Category::forward_temporaries;
  Phase phase = Phase::setup;
  std::int32_t index = 0;  ///< block; for `phase`: the step; for `cudnn`: none
};

struct Trace {
  std::vector<TraceBlock> blocks;
  std::vector<TraceEvent> events;
  std::vector<std::string> texts;
};

}  // namespace headroom::shadow
