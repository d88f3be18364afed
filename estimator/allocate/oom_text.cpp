#include "estimator/allocate/oom_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace headroom {

std::string oom_size(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes <= KiB) return fmt::format("{} bytes", bytes);
  if (bytes <= MiB) return fmt::format("{:.2f} KiB", value / KiB);
  if (bytes <= GiB) return fmt::format("{:.2f} MiB", value / MiB);
  return fmt::format("{:.2f} GiB", value / GiB);
}

OutOfMemory describe_oom(const OomState& state, const AllocatorDevice& device, TorchVersion torch) {
  OutOfMemory oom{
      .requested = Bytes(state.requested),
      .rounded = Bytes(state.rounded),
      .segment = Bytes(state.segment),
      .device_free = Bytes(std::max<std::int64_t>(0, device.total.count() - device.outside.count() - state.reserved)),
      .text = {}};
  // As in CUDACachingAllocator.cpp: what is "allocated by PyTorch" includes the free blocks of private pools.
  const std::string allowed = state.allowed < 0 ? "" : oom_size(state.allowed) + " allowed; ";
  const std::string private_pools = state.free_in_private_pools == 0
                                        ? ""
                                        : fmt::format("with {} allocated in private pools (e.g., CUDA Graphs), ",
                                                      oom_size(state.free_in_private_pools));
  const std::int64_t allocated = state.allocated + state.free_in_private_pools;
  oom.text = fmt::format(
      "CUDA out of memory. Tried to allocate {}. GPU {} has a total capacity of {} of which {} is free. "
      "Including non-PyTorch memory, this process has {} memory in use. {}Of the allocated memory {} is allocated by "
      "PyTorch, {}and {} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
      "setting "
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
      "Management  ({})",
      oom_size(state.segment), device.index, oom_size(device.total.count()), oom_size(oom.device_free.count()),
      oom_size(device.outside.count() + state.reserved), allowed, oom_size(allocated), private_pools,
      oom_size(state.reserved - allocated),
      torch < TorchVersion{2, 10} ? "https://pytorch.org/docs/stable/notes/cuda.html#environment-variables"
                                  : "https://docs.pytorch.org/docs/stable/notes/"
                                    "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf");
  return oom;
}

}  // namespace headroom
