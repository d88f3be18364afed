// Report: what the runner answers, one JSON object a line on standard output (calibration/README.md says which).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/runner/device.h"
#include "estimator/base/dims.h"
#include "estimator/step/machine.h"

namespace headroom::runner {

class Report {
 public:
  /// Where the run is: allocator events that come now belong to it.
  struct Place {
    Phase phase = Phase::setup;
    int step = 0;
    std::string_view op;  ///< of a call; "" in backward, where the node has a name
    std::string_view site;
    std::string_view module;
  };

  void start(const DeviceInfo& info);
  void phase_ended(const Statistics& s, std::optional<std::int64_t> process_bytes, double seconds);
  void loss(int step, double value);
  void gradients(int step, std::int64_t tensors, std::int64_t not_finite);
  void shape_differs(const Dims& expected, const Dims& got, std::string_view value);
  /// Workspaces of forward, input gradient and weight gradient; nullopt where the call failed.
  static void convolution(std::size_t index, const std::array<std::optional<std::int64_t>, 3>& workspaces);
  /// Kept until the end: the allocator's lock is held.
  void memory(const MemoryEvent& e, std::string_view node);
  /// The allocation that is made now is refused; `node` is backward's, where that is at work.
  void refused(std::string node);
  /// "completed", "out-of-memory", "failed".
  void end(std::string_view outcome, std::string_view message);

  Place place;

 private:
  struct Event {
    MemoryEvent memory;
    Phase phase;
    int step;
    std::string op, site, module;
  };
  std::vector<Event> events_;
  std::string refused_node_;
  Statistics peaks_;
  std::int64_t process_bytes_ = 0;
  double seconds_ = 0;
  std::int64_t shapes_wrong_ = 0;
};

}  // namespace headroom::runner
