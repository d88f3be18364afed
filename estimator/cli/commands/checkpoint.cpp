#include <unistd.h>

#include "estimator/base/error.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/plan/checkpoint/planner.h"
#include "estimator/report/checkpoint_report.h"

namespace headroom::cli {

int run_checkpoint(const Options& o) {
  Estimator estimator{std::filesystem::path(model_file(o))};
  const CheckpointAnswer a =
      plan_checkpoints(estimator, scenario_of(o), {.most_recomputed = o.max_recompute, .any_cut = o.by_cuts});
  if (!o.plan.empty() && !a.asked)
    throw usage_error("--plan needs a choice, and there is none", o.plan,
                      "--memory, --gpu or --max-recompute choose a placement");
  if (!o.plan.empty() && a.chosen) {
    write_result(report::checkpoint_plan_json(*a.chosen, a.calls), o.plan);
  }
  if (!o.svg.empty()) write_result(report::checkpoint_svg(a), o.svg);
  write_result(o.format == "json"
                   ? report::checkpoint_json(a)
                   : report::checkpoint_table(
                         a, {.colours = o.output.empty() && colours_wanted(STDOUT_FILENO), .width = terminal_width()}),
               o.output);
  return static_cast<int>(a.asked && !a.chosen ? Exit::answered_no : Exit::answered);
}

}  // namespace headroom::cli
