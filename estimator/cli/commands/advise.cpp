#include <unistd.h>

#include "estimator/base/error.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/plan/advise.h"
#include "estimator/report/advice_report.h"

namespace headroom::cli {

int run_advise(const Options& o) {
  Estimator estimator{std::filesystem::path(model_file(o))};
  const Advice advice = advise(estimator, scenario_of(o));

  std::string text;
  if (o.format == "json")
    text = report::advice_json(advice);
  else if (o.format == "csv")
    text = report::advice_csv(advice);
  else if (o.format == "md")
    text = report::advice_markdown(advice);
  else
    text = report::advice_table(
        advice, {.colours = o.output.empty() && colours_wanted(STDOUT_FILENO), .width = terminal_width()});
  write_result(text, o.output);
  return static_cast<int>(advice.fits() ? Exit::answered : Exit::answered_no);
}

}  // namespace headroom::cli
