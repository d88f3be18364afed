#include <unistd.h>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/report/difference_report.h"
#include "estimator/report/footprint.h"

namespace headroom::cli {
namespace {

Footprint footprint_of(const std::string& file, const Options& o) {
  return report::is_json(file) ? report::read_footprint(file) : report::footprint_of(estimate(file, scenario_of(o)));
}

}  // namespace

int run_diff(const Options& before) {
  const Options& after = before.after ? *before.after : before;
  if (after.files.empty() || after.files.size() > 2 || (after.files.size() == 1 && !before.after))
    throw usage_error("headroom diff wants two files, or one and what changes after --", "",
                      "for example: headroom diff model.onnx --batch 8 -- --batch 16");
  const std::string &first = after.files.front(), &second = after.files.back();
  if (report::is_json(first) && report::is_json(second))
    for (const std::string& name : after.given)
      if (sets_scenario(name))
        throw usage_error("--" + name + " has no effect on saved estimates", "", "each holds the scenario it is of");

  const Difference d = difference(footprint_of(first, before), footprint_of(second, after));
  report::DifferenceVerdict verdict{.tolerance = after.tolerance};
  if (!after.tolerance.empty()) {
    const auto tolerance = parse_tolerance(after.tolerance);
    if (!tolerance)
      throw usage_error("--tolerance wants a size or a percentage, not '" + printable(after.tolerance) + "'", "",
                        "for example --tolerance 100MiB or --tolerance 5%");
    verdict.exceeded = exceeds(d, *tolerance);
  }

  std::string text;
  if (after.format == "json")
    text = report::difference_json(d, verdict);
  else if (after.format == "csv")
    text = report::difference_csv(d);
  else if (after.format == "md")
    text = report::difference_markdown(d, verdict);
  else
    text = report::difference_table(
        d, verdict, {.colours = after.output.empty() && colours_wanted(STDOUT_FILENO), .width = terminal_width()});
  write_result(text, after.output);
  return static_cast<int>(verdict.exceeded ? Exit::answered_no : Exit::answered);
}

}  // namespace headroom::cli
