#include <unistd.h>

#include "estimator/base/error.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/plan/replay_answer.h"
#include "estimator/report/replay_report.h"

namespace headroom::cli {

int run_replay(const Options& o) {
  ReplayQuestion question{.alloc_confs = o.alloc_confs, .memory = memory_of(o), .check = o.check};
  if (!o.torch.empty()) question.torch = parse_torch_version(o.torch);
  const std::vector<ReplayAnswer> answers = answer_replay(one_file(o, "history", "snapshot.pickle"), question);

  std::string text;
  if (o.format == "json")
    text = report::replay_json(answers);
  else if (o.format == "csv")
    text = report::replay_csv(answers);
  else if (o.format == "md")
    text = report::replay_markdown(answers);
  else
    text = report::replay_table(
        answers, {.colours = o.output.empty() && colours_wanted(STDOUT_FILENO), .width = terminal_width()});
  write_result(text, o.output);

  for (const ReplayAnswer& a : answers)
    if (!a.fits().value_or(true) || !a.check_passed) return static_cast<int>(Exit::answered_no);
  return static_cast<int>(Exit::answered);
}

}  // namespace headroom::cli
