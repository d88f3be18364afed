#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/plan/cards.h"

namespace headroom::cli {

const std::string& model_file(const Options& o, std::string_view command) {
  if (o.files.empty())
    throw usage_error("headroom " + std::string(command) + " wants a model file", "",
                      "for example: headroom " + std::string(command) + " model.onnx --batch 8");
  if (o.files.size() > 1)
    throw usage_error("headroom " + std::string(command) + " takes one model file, but got '" + printable(o.files[0]) +
                      "' and '" + printable(o.files[1]) + "'");
  return o.files[0];
}

Scenario scenario_of(const Options& o) {
  Scenario s = o.scenario;
  if (!o.gpu.empty()) s.device = card_named(o.gpu).device;
  if (!o.memory.empty()) {
    const auto bytes = parse_size(o.memory);
    if (!bytes || bytes->count() == 0)
      throw usage_error("--memory wants a size with its unit, not '" + printable(o.memory) + "'", "",
                        "for example --memory 24GiB");
    s.device.total_bytes = *bytes;
  }
  return s;
}

Diagnostics not_modelled_yet(const Scenario& s) {
  Diagnostics out;
  const auto say = [&out](const char* option, std::string what) {
    out.push_back({.code = "option-not-modelled",
                   .severity = Severity::warning,
                   .node = option,
                   .message = std::string(option) + " is not modelled yet: " + std::move(what)});
  };
  if (s.parallel != Parallel::none) say("--parallel", "the figure is of one GPU that holds the whole model");
  if (s.world_size > 1 && s.parallel == Parallel::none) say("--world-size", "it needs --parallel");
  if (!s.profile.empty()) say("--profile", "the built-in device facts are used");
  return out;
}

}  // namespace headroom::cli
