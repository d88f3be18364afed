#include "estimator/cli/run.h"

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/options.h"
#include "estimator/cli/output.h"
#include "estimator/plan/failure.h"

namespace headroom::cli {
namespace {

int say(Exit code, std::string_view what, std::string_view where = {}, std::string_view hint = {}) {
  const bool colour = colours_wanted(STDERR_FILENO);
  std::string line = colour ? "\033[1;31mheadroom:\033[0m " : "headroom: ";
  if (!where.empty()) line += printable(where, 400) + ": ";
  line += printable(what, 600);
  if (!hint.empty()) line += (colour ? "\n  \033[2mhint:\033[0m " : "\n  hint: ") + printable(hint, 600);
  std::cerr << line << "\n";
  return static_cast<int>(code);
}

int run_checked(const Options& o) {
  if (o.version) {
    write_result("headroom " HEADROOM_VERSION "\n", {});
    return 0;
  }
  if (o.command.empty()) {
    write_result(general_help(), {});
    return 0;
  }
  const Command& command = *find_command(o.command);
  if (o.help) {
    write_result(help_of(command), {});
    return 0;
  }
  return command.run(o);
}

}  // namespace

int run(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error of write(2) like a full disk
  Options o;
  try {
    o = parse({argv + 1, argv + argc});
    return run_checked(o);
  } catch (...) {
    const Error e = current_failure();
    const bool of_the_file = e.where().empty() && e.code() == Exit::bad_input && !o.files.empty();
    return say(e.code(), e.what(), of_the_file ? o.files[0] : e.where(), e.hint());
  }
}

}  // namespace headroom::cli
