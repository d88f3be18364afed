// The text of torch.OutOfMemoryError.
#pragma once

#include <string>

#include "estimator/allocate/allocator.h"

namespace headroom {

/// The allocator's state when it refused a request.
struct OomState {
  std::int64_t requested = 0;
  std::int64_t rounded = 0;
  std::int64_t segment = 0;
  std::int64_t allowed = -1;  ///< bytes the memory fraction allows; -1: no fraction set
  std::int64_t allocated = 0;
  std::int64_t reserved = 0;
  std::int64_t free_in_private_pools = 0;
};

/// "%.2f MiB" and so on, as the allocator prints sizes: the unit changes above, not at, 1024 of the smaller one.
std::string oom_size(std::int64_t bytes);

OutOfMemory describe_oom(const OomState& state, const AllocatorDevice& device, TorchVersion torch);

}  // namespace headroom
