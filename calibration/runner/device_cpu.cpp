// The CPU: a counting allocator around PyTorch's. No caching, so what is reserved is what is allocated.
#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <torch/version.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "calibration/runner/device.h"
#include "estimator/base/error.h"

namespace headroom::runner {
namespace {

class CountingAllocator final : public c10::Allocator {
 public:
  static CountingAllocator& instance() {
    static auto* one = new CountingAllocator;  // tensors outlive main
    return *one;
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    {
      const std::lock_guard lock(mutex_);
      if (limit_ > 0 && statistics_.allocated + static_cast<std::int64_t>(bytes) > limit_) {
        event({MemoryEvent::Kind::out_of_memory, static_cast<std::int64_t>(bytes), 0});
        TORCH_CHECK_WITH(OutOfMemoryError, false, "CPU out of memory: the cap of ", limit_, " bytes is reached");
      }
    }
    c10::DataPtr data = below_.allocate(bytes);
    void* const address = data.release_context();
    const std::lock_guard lock(mutex_);
    if (address) sizes_[address] = static_cast<std::int64_t>(bytes);
    statistics_.allocated += static_cast<std::int64_t>(bytes);
    statistics_.allocated_peak = std::max(statistics_.allocated_peak, statistics_.allocated);
    if (address) event({MemoryEvent::Kind::alloc, static_cast<std::int64_t>(bytes), address_of(address)});
    return {address, address, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }

  Statistics statistics() {
    const std::lock_guard lock(mutex_);
    Statistics s = statistics_;
    s.reserved = s.requested = s.allocated;
    s.reserved_peak = s.requested_peak = s.allocated_peak;
    return s;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    statistics_.allocated_peak = statistics_.allocated;
  }
  void limit(std::int64_t bytes) { limit_ = bytes; }
  void watch(std::function<void(const MemoryEvent&)> watcher) { watcher_ = std::move(watcher); }

 private:
  static std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
  static void release(void* address) { instance().free(address); }

  void free(void* address) {
    if (!address) return;
    {
      const std::lock_guard lock(mutex_);
      const auto found = sizes_.find(address);
      if (found != sizes_.end()) {
        statistics_.allocated -= found->second;
        event({MemoryEvent::Kind::free, found->second, address_of(address)});
        sizes_.erase(found);
      }
    }
    below_.raw_deleter()(address);
  }
  void event(const MemoryEvent& e) const {
    if (watcher_) watcher_(e);
  }

  c10::Allocator& below_ = *c10::GetDefaultCPUAllocator();
  std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> sizes_;
  Statistics statistics_;
  std::int64_t limit_ = 0;
  std::function<void(const MemoryEvent&)> watcher_;
};

class Cpu final : public Device {
 public:
  Cpu() { c10::SetCPUAllocator(&CountingAllocator::instance(), 100); }
  DeviceInfo info() const override {
    DeviceInfo i;
    i.name = "cpu";
    i.torch = TORCH_VERSION;
    return i;
  }
  Statistics statistics() override { return CountingAllocator::instance().statistics(); }
  void reset_peaks() override { CountingAllocator::instance().reset_peak(); }
  void synchronize() override {}
  std::optional<std::int64_t> process_bytes() override { return std::nullopt; }
  void cap(Bytes bytes) override { CountingAllocator::instance().limit(bytes.count()); }
  void watch(std::function<void(const MemoryEvent&)> watcher) override {
    CountingAllocator::instance().watch(std::move(watcher));
  }
};

}  // namespace

std::unique_ptr<Device> open_cpu() { return std::make_unique<Cpu>(); }

std::unique_ptr<Device> open_device(const std::string& name) {
  if (name == "cpu") return open_cpu();
  if (name != "cuda") throw bad_input("the job names an unknown device: '" + name + "'");
#ifdef HEADROOM_CUDA
  return open_cuda();
#else
  throw environment_error("this headroom-runner was built against a PyTorch without CUDA", "",
                          "build it against a CUDA build of PyTorch: TORCH_PYTHON=PYTHON scripts/build");
#endif
}

}  // namespace headroom::runner
