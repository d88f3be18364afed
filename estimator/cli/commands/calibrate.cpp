#include <chrono>
#include <iostream>

#include "calibration/fit/calibrate.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"

namespace headroom::cli {

int run_calibrate(const Options& o) {
  if (o.output.empty())
    throw usage_error("headroom calibrate wants a file for the profile", "", "headroom calibrate -o mycard.json");
  CalibrateOptions c{.runner = find_runner(o.runner)};
  c.runner.limit = std::chrono::seconds(o.time_limit);
  c.budget = std::chrono::seconds(o.seconds);
  c.from_nothing = o.from_nothing;
  c.models.assign(o.files.begin(), o.files.end());
  c.scenario = o.scenario;
  c.kept = o.output + ".measured";
  c.progress = [](const std::string& what) { std::cerr << "calibrate: " << printable(what, 300) << "\n"; };
  Profile profile = calibrate(c);
  write_result(profile_text(profile), o.output);
  if (!c.models.empty()) {
    run_models(profile, o.output, c);
    write_result(profile_text(profile), o.output);
  }
  std::filesystem::remove(c.kept);
  return 0;
}

}  // namespace headroom::cli
