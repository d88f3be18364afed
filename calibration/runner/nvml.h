// NVML, loaded when it is asked for: a machine without the driver still starts the runner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom::runner {

class Nvml {
 public:
  /// Of the card with this PCI bus id.
  explicit Nvml(const std::string& pci_bus_id);

  /// Memory in use on the card, by all.
  std::optional<std::int64_t> used_bytes() const;
  /// Memory in use by this process. In a container the driver lists pids of the host: then a process that is alone on
  /// the card is this one.
  std::optional<std::int64_t> process_bytes() const;
  std::string driver_version() const;

 private:
  template <class F>
  F function(const char* name) const;

  void* library_ = nullptr;
  void* card_ = nullptr;
};

}  // namespace headroom::runner
