// Measurement: what one run of headroom-runner answered.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "calibration/job/job.h"
#include "estimator/base/bytes.h"
#include "estimator/base/error.h"
#include "estimator/step/machine.h"

namespace headroom {

/// The card and the software that measured.
struct MeasuredDevice {
  std::string name;
  std::string torch, cuda, cudnn, driver;
  Bytes total, context, others;  ///< `others`: in use by other processes when the run began
  int sm_count = 0, compute_major = 0, compute_minor = 0;
};

struct MeasuredPhase {
  Phase phase = Phase::setup;
  int step = 0;
  Bytes allocated_peak, reserved_peak;
  std::optional<Bytes> device;
  double seconds = 0;
};

struct MeasuredEvent {
  bool alloc = true;
  std::int64_t bytes = 0;
  std::uint64_t address = 0;
  int step = 0;
  Phase phase = Phase::setup;
  std::string op, site, module;
};

struct Measurement {
  enum class Outcome {
    completed,
    out_of_memory,
    failed,  ///< the run could not be made; `message` says why
  };
  Outcome outcome = Outcome::failed;
  std::string message;
  Exit code = Exit::environment;  ///< of a failed run: whose fault it is
  std::string op, site, module;   ///< of the call at which it ended early
  MeasuredDevice device;
  std::vector<MeasuredPhase> phases;
  std::vector<MeasuredEvent> events;  ///< with Job::history
  /// Of Job::convolutions, by their index: forward, input gradient, weight gradient; nullopt where the call failed.
  std::vector<std::pair<std::size_t, std::array<std::optional<Bytes>, 3>>> convolutions;

  Bytes allocated_peak() const;  ///< over all steps, without the setup
  Bytes reserved_peak() const;   ///< over the whole run
  std::optional<Bytes> device_peak() const;
  double seconds() const;
};

struct Runner {
  std::filesystem::path path;
  std::chrono::seconds limit{600};
};

/// --runner, else $HEADROOM_RUNNER, else beside this program, else on the PATH. Throws Error(environment) when there is
/// none.
Runner find_runner(const std::string& given);

/// One measurement in one process. A run that fails is an answer (`failed`); so is a runner that crashes, hangs or
/// answers garbage. Throws Error(environment) only when it cannot be started at all.
Measurement measure(const Runner& runner, const Job& job);

}  // namespace headroom
