#include "estimator/plan/estimate.h"

#include <unistd.h>

#include "estimator/base/error.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/plan/snapshot.h"
#include "estimator/report/report.h"

namespace headroom::cli {

int run_estimate(const Options& o) {
  const std::string& file = model_file(o);
  const Scenario scenario = scenario_of(o);
  static Stages& stages = *new Stages;  // not taken apart at the end, like a file's pages: the process goes anyway
  Estimate e = estimate(file, scenario, &stages);
  if (!o.snapshot.empty()) write_result(snapshot_of(stages, scenario), o.snapshot);
  const Diagnostics later = not_modelled_yet(scenario);
  e.diagnostics.insert(e.diagnostics.end(), later.begin(), later.end());
  e.budget = budget_of(o);

  std::string text;
  if (o.format == "json")
    text = report::json(e);
  else if (o.format == "csv")
    text = report::csv(e);
  else if (o.format == "md")
    text = report::markdown(e);
  else
    text = report::table(e, {.colours = o.output.empty() && colours_wanted(STDOUT_FILENO), .width = terminal_width()});
  write_result(text, o.output);

  if (o.strict) demand_modelled(e);
  return static_cast<int>(e.holds() ? Exit::answered : Exit::answered_no);
}

}  // namespace headroom::cli
