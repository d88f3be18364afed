// StepLog: who saves what for backward, and when its node runs. Noted on request, for questions about other steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headroom::shadow {

struct StepLog {
  struct Save {
    std::uint64_t node = 0;   ///< sequence number
    std::int32_t block = -1;  ///< of the trace; -1: no device memory
    std::size_t blocks = 0;   ///< made before
  };
  /// Places in the trace's events.
  struct NodeRun {
    std::uint64_t node = 0;
    std::size_t begin = 0;
    std::size_t applied = 0;   ///< its gradients are made, its locals gone
    std::size_t released = 0;  ///< its saved tensors are gone too
  };
  /// A tensor that a kernel gave.
  struct Result {
    std::int32_t op = -1;     ///< name of the operator, a text of the trace
    std::int32_t block = -1;  ///< of the trace; -1: no device memory
  };
  std::vector<Save> saves;      ///< in the order of the forward pass
  std::vector<Result> results;  ///< as well
  std::vector<NodeRun> nodes;   ///< in the order of backward, without accumulators
};

}  // namespace headroom::shadow
