#include <unistd.h>

#include <filesystem>
#include <map>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/config.h"
#include "estimator/cli/output.h"
#include "estimator/report/check_report.h"

namespace headroom::cli {

int run_check(const Options& o) {
  Options with_file = o;
  if (o.files.empty()) with_file.files = {"headroom.toml"};
  std::error_code none;
  if (std::filesystem::is_directory(with_file.files[0], none)) with_file.files[0] += "/headroom.toml";
  const std::string& config = one_file(with_file, "configuration", "headroom.toml");

  std::vector<report::CheckedScenario> checked;
  std::map<std::string, std::shared_ptr<const Model>> models;
  Exit code = Exit::answered;
  for (const ConfiguredScenario& c : read_config(config)) {
    if (c.options.gpu.empty() && c.options.memory.empty() && c.options.budget.empty())
      throw bad_input("scenario '" + c.name + "' is held to nothing", config + ":" + std::to_string(c.line),
                      "give it a budget, a gpu or a memory");
    const std::string& file = c.options.files[0];
    report::CheckedScenario& s = checked.emplace_back();
    s.name = c.name;
    s.model = file;
    try {
      const Scenario scenario = scenario_of(c.options);
      std::shared_ptr<const Model>& model = models[file];
      if (!model) model = std::make_shared<const Model>(read_model(file));
      s.estimate = estimate(file, scenario, nullptr, model);
      s.estimate->budget = budget_of(c.options);
      const Diagnostics later = not_modelled_yet(scenario);
      s.estimate->diagnostics.insert(s.estimate->diagnostics.end(), later.begin(), later.end());
      if (o.strict) demand_modelled(*s.estimate);
    } catch (const Error& e) {
      s.error = e;
    }
    // What could not be answered weighs more than an answer "no".
    if (s.error && code <= Exit::answered_no)
      code = s.error->code();
    else if (!s.passed() && code == Exit::answered)
      code = Exit::answered_no;
  }

  std::string text;
  if (o.format == "json")
    text = report::check_json(checked);
  else if (o.format == "csv")
    text = report::check_csv(checked);
  else if (o.format == "md")
    text = report::check_markdown(checked);
  else
    text = report::check_table(
        checked, {.colours = o.output.empty() && colours_wanted(STDOUT_FILENO), .width = terminal_width()});
  write_result(text, o.output);
  return static_cast<int>(code);
}

}  // namespace headroom::cli
