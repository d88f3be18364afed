// Device: the memory that the runner's tensors live in, and what its allocator says.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "estimator/base/bytes.h"

namespace headroom::runner {

struct Statistics {
  std::int64_t allocated = 0, allocated_peak = 0;
  std::int64_t reserved = 0, reserved_peak = 0;
  std::int64_t requested = 0, requested_peak = 0;
};

/// What is there; versions are "" where they do not apply.
struct DeviceInfo {
  std::string name;
  std::string torch, cuda, cudnn, driver;
  std::int64_t total_bytes = 0;
  std::int64_t context_bytes = 0;  ///< of this process before its first tensor
  std::int64_t others_bytes = 0;   ///< used by other processes when this one began
  int sm_count = 0;
  int compute_major = 0, compute_minor = 0;
};

struct MemoryEvent {
  enum class Kind { alloc, free, segment_alloc, segment_free, out_of_memory };
  Kind kind;
  std::int64_t bytes;     ///< as requested
  std::uint64_t address;  ///< for out_of_memory: free bytes of the device
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceInfo info() const = 0;
  virtual Statistics statistics() = 0;
  virtual void reset_peaks() = 0;
  /// Waits until the device has done what it was given.
  virtual void synchronize() = 0;
  /// What nvidia-smi shows for this process; nullopt where it cannot be told from others.
  virtual std::optional<std::int64_t> process_bytes() = 0;
  /// torch.cuda.set_per_process_memory_fraction.
  virtual void cap(Bytes bytes) = 0;
  /// Calls `watcher` at every event from now on, under the allocator's lock.
  virtual void watch(std::function<void(const MemoryEvent&)> watcher) = 0;
};

/// "cuda" (the first visible card) or "cpu". Throws Error(environment) where there is none.
std::unique_ptr<Device> open_device(const std::string& name);
std::unique_ptr<Device> open_cpu();
std::unique_ptr<Device> open_cuda();

}  // namespace headroom::runner
