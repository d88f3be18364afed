// The first visible card: PyTorch's caching allocator, the CUDA runtime and NVML.
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>
#include <torch/version.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "calibration/runner/device.h"
#include "calibration/runner/nvml.h"
#include "estimator/base/error.h"

namespace headroom::runner {
namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const bool driver = error == cudaErrorInsufficientDriver || error == cudaErrorSystemDriverMismatch;
  throw environment_error(std::string(what) + ": " + cudaGetErrorString(error), "",
                          driver ? "this PyTorch wants a newer NVIDIA driver" : "nvidia-smi says what cards there are");
}

std::string cuda_version(int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); }

std::string bus_id() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "no GPU");
  if (count == 0) throw environment_error("no GPU", "", "nvidia-smi says what cards there are");
  char text[32] = {};
  check(cudaDeviceGetPCIBusId(text, sizeof text, 0), "no GPU");
  return text;
}

class Cuda final : public Device {
 public:
  Cuda() : nvml_(bus_id()), used_before_(nvml_.used_bytes().value_or(0)) {
    check(cudaSetDevice(0), "no GPU");
    check(cudaFree(nullptr), "no CUDA context");  // makes the context
    info_.context_bytes =
        process_bytes().value_or(std::max<std::int64_t>(nvml_.used_bytes().value_or(0) - used_before_, 0));
    at::globalContext().lazyInitDevice(c10::kCUDA);
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "no GPU");
    info_.name = properties.name;
    info_.torch = TORCH_VERSION;
    info_.cuda = cuda_version(CUDART_VERSION);
    const long cudnn = at::detail::getCUDAHooks().versionCuDNN();
    info_.cudnn =
        std::to_string(cudnn / 10000) + "." + std::to_string(cudnn % 10000 / 100) + "." + std::to_string(cudnn % 100);
    info_.driver = nvml_.driver_version();
    info_.total_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
    info_.others_bytes = used_before_;
    info_.sm_count = properties.multiProcessorCount;
    info_.compute_major = properties.major;
    info_.compute_minor = properties.minor;
  }

  DeviceInfo info() const override { return info_; }

  Statistics statistics() override {
    const auto s = caching::getDeviceStats(0);
    return {.allocated = s.allocated_bytes[0].current,
            .allocated_peak = s.allocated_bytes[0].peak,
            .reserved = s.reserved_bytes[0].current,
            .reserved_peak = s.reserved_bytes[0].peak,
            .requested = s.requested_bytes[0].current,
            .requested_peak = s.requested_bytes[0].peak};
  }
  void reset_peaks() override { caching::resetPeakStats(0); }
  void synchronize() override { check(cudaDeviceSynchronize(), "the GPU"); }
  std::optional<std::int64_t> process_bytes() override { return nvml_.process_bytes(); }
  void cap(Bytes bytes) override {
    caching::setMemoryFraction(
        std::min(1.0, static_cast<double>(bytes.count()) / static_cast<double>(info_.total_bytes)), 0);
  }
  void watch(std::function<void(const MemoryEvent&)> watcher) override {
    using Entry = caching::TraceEntry;
    caching::attachAllocatorTraceTracker([watcher = std::move(watcher)](const Entry& e) {
      std::optional<MemoryEvent::Kind> kind;
      switch (e.action_) {
        case Entry::ALLOC:
          kind = MemoryEvent::Kind::alloc;
          break;
        case Entry::FREE_COMPLETED:
          kind = MemoryEvent::Kind::free;
          break;
        case Entry::SEGMENT_ALLOC:
        case Entry::SEGMENT_MAP:
          kind = MemoryEvent::Kind::segment_alloc;
          break;
        case Entry::SEGMENT_FREE:
        case Entry::SEGMENT_UNMAP:
          kind = MemoryEvent::Kind::segment_free;
          break;
        case Entry::OOM:
          kind = MemoryEvent::Kind::out_of_memory;
          break;
        default:
          break;
      }
      if (kind) watcher({*kind, static_cast<std::int64_t>(e.size_), e.addr_});
    });
  }

 private:
  Nvml nvml_;
  std::int64_t used_before_;
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<Device> open_cuda() { return std::make_unique<Cuda>(); }

}  // namespace headroom::runner
