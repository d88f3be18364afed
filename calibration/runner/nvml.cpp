#include "calibration/runner/nvml.h"

#include <dlfcn.h>
#include <unistd.h>

#include <vector>

namespace headroom::runner {
namespace {

// As nvml.h declares them.
struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_bytes;
  unsigned int gpu_instance, compute_instance;
};
struct MemoryInfo {
  unsigned int version;
  unsigned long long total, reserved, free, used;  // `used` is of processes, without what the driver reserves
};
constexpr unsigned long long not_available = ~0ULL;

}  // namespace

template <class F>
F Nvml::function(const char* name) const {
  return library_ ? reinterpret_cast<F>(dlsym(library_, name)) : nullptr;
}

Nvml::Nvml(const std::string& pci_bus_id) : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  const auto init = function<int (*)()>("nvmlInit_v2");
  const auto find = function<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (!init || !find || init() != 0 || find(pci_bus_id.c_str(), &card_) != 0) card_ = nullptr;
}

std::optional<std::int64_t> Nvml::used_bytes() const {
  const auto get = function<int (*)(void*, MemoryInfo*)>("nvmlDeviceGetMemoryInfo_v2");
  MemoryInfo info{};
  info.version = sizeof info | 2U << 24;
  if (!card_ || !get || get(card_, &info) != 0) return std::nullopt;
  return static_cast<std::int64_t>(info.used);
}

std::optional<std::int64_t> Nvml::process_bytes() const {
  const auto get = function<int (*)(void*, unsigned int*, ProcessInfo*)>("nvmlDeviceGetComputeRunningProcesses_v3");
  if (!card_ || !get) return std::nullopt;
  std::vector<ProcessInfo> processes(256);
  auto count = static_cast<unsigned int>(processes.size());
  if (get(card_, &count, processes.data()) != 0) return std::nullopt;
  processes.resize(count);
  const ProcessInfo* mine = nullptr;
  for (const ProcessInfo& p : processes)
    if (p.pid == static_cast<unsigned int>(getpid())) mine = &p;
  if (!mine && processes.size() == 1) mine = processes.data();
  if (!mine || mine->used_bytes == not_available) return std::nullopt;
  return static_cast<std::int64_t>(mine->used_bytes);
}

std::string Nvml::driver_version() const {
  const auto get = function<int (*)(char*, unsigned int)>("nvmlSystemGetDriverVersion");
  char text[96] = {};
  return get && get(text, sizeof text) == 0 ? text : "";
}

}  // namespace headroom::runner
