#include <unistd.h>

#include <chrono>

#include "calibration/measure/report.h"
#include "calibration/measure/verification.h"
#include "estimator/base/error.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/config.h"
#include "estimator/cli/output.h"

namespace headroom::cli {
namespace {

VerifyOptions verify_options(const Options& o, const Options& question) {
  VerifyOptions v{.runner = find_runner(o.runner)};
  v.runner.limit = std::chrono::seconds(o.time_limit);
  if (const auto cap = memory_of(question)) v.memory = *cap;
  return v;
}

report::TableStyle table_style(const Options& o) {
  return {.colours = o.output.empty() && colours_wanted(STDOUT_FILENO), .width = terminal_width()};
}

int verify_suite(const Options& o) {
  std::vector<report::VerifiedRow> rows;
  bool all = true;
  for (const ConfiguredScenario& c : read_config(o.suite)) {
    report::VerifiedRow& row = rows.emplace_back();
    row.name = c.name;
    try {
      Estimator estimator(c.options.files[0]);
      row.verification = verify(estimator, scenario_of(c.options), verify_options(o, c.options));
    } catch (const Error& e) {
      if (e.code() == Exit::environment) throw;
      row.verification.measured.message = e.what();
    }
    all = all && row.verification.holds();
  }
  write_result(o.format == "json" ? report::json(rows) : report::table(rows, table_style(o)), o.output);
  return static_cast<int>(all ? Exit::answered : Exit::answered_no);
}

}  // namespace

int run_verify(const Options& o) {
  if (o.format != "table" && o.format != "json")
    throw usage_error("headroom verify writes --format table or json, not " + o.format);
  if (!o.suite.empty()) {
    if (!o.files.empty() || o.max_batch || !o.events.empty())
      throw usage_error("--suite stands alone: it names models and all that is asked of them", "",
                        "headroom verify --suite headroom.toml");
    return verify_suite(o);
  }
  const std::string& file = model_file(o);
  Scenario scenario = scenario_of(o);
  const VerifyOptions options = verify_options(o, o);
  Estimator estimator(file);
  if (o.max_batch) {
    if (!o.events.empty()) throw usage_error("--events is of one run, --max-batch makes many");
    if (scenario.batch) throw usage_error("--max-batch looks for the batch: leave --batch out");
    const LargestBatch batch = verify_largest_batch(estimator, scenario, options);
    write_result(o.format == "json" ? report::json(batch) : report::table(batch), o.output);
    return static_cast<int>(batch.predicted == batch.measured ? Exit::answered : Exit::answered_no);
  }
  const report::VerifiedRow row{file, verify(estimator, scenario, options)};
  const Measurement& m = row.verification.measured;
  if (!row.verification.ran()) throw Error(m.code, m.message, m.op.empty() ? "" : m.op + " " + m.site + " " + m.module);
  if (!o.events.empty()) write_result(report::events_json(row.verification), o.events);
  write_result(o.format == "json" ? report::json({row}) : report::table(row, table_style(o)), o.output);
  return static_cast<int>(row.verification.holds() ? Exit::answered : Exit::answered_no);
}

}  // namespace headroom::cli
