// Calibration: a card's Profile from nothing, within a time.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "calibration/measure/measurement.h"
#include "estimator/plan/profile.h"

namespace headroom {

struct CalibrateOptions {
  Runner runner;
  std::chrono::seconds budget{120};
  bool from_nothing = false;                  ///< as if headroom had no table of this kind of card
  std::vector<std::filesystem::path> models;  ///< their convolutions are measured first, and each is run
  Scenario scenario;                          ///< their sizes
  /// Measured convolutions, a line each: what an earlier calibration of this card left is not measured again.
  std::filesystem::path kept;
  std::function<void(const std::string&)> progress;
};

/// Context, workspaces of the libraries, and convolutions until the time is over but for the models' runs. Throws
/// Error: of the question, or what the runner failed with.
Profile calibrate(const CalibrateOptions& options);

/// Runs the models and puts what the estimate with `profile`, which is the file `path`, says beside it. The context
/// becomes the most that a run took.
void run_models(Profile& profile, const std::string& path, const CalibrateOptions& options);

}  // namespace headroom
