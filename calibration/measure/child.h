// A child process that is given its standard input and read to its end, and that never outlives us.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>

namespace headroom {

struct ChildResult {
  enum class End { exited, signalled, timed_out, too_much };
  End end = End::exited;
  int code = 0;        ///< exit status or signal
  std::string output;  ///< standard output
  std::string errors;  ///< the last few KiB of standard error
};

struct ChildLimits {
  std::chrono::seconds time{600};
  std::size_t output_bytes = std::size_t{1} << 30;
};

/// Runs `program` without arguments in a process group of its own, which dies with us. `environment` is set on top of
/// ours ("" removes a variable). On SIGINT and SIGTERM the child is killed first, then the signal acts on us. Throws
/// Error(environment) when it cannot be started.
ChildResult run_child(const std::filesystem::path& program, const std::string& input,
                      const std::map<std::string, std::string>& environment, const ChildLimits& limits);

}  // namespace headroom
