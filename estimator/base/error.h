// Error: the one exception for what a user gave us that cannot be used.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace headroom {

/// Exit codes of the command line (design, section 5).
enum class Exit : int {
  answered = 0,
  answered_no = 1,
  usage = 2,
  bad_input = 3,
  not_modelled = 4,
  environment = 5,
  internal = 70,
};

/// One clear sentence for the user: what is wrong, where, and what to try. Names taken from files are sanitised when
/// the message is printed, not here.
class Error : public std::runtime_error {
 public:
  Error(Exit code, std::string what, std::string where = {}, std::string hint = {})
      : std::runtime_error(what), code_(code), where_(std::move(where)), hint_(std::move(hint)) {}

  Exit code() const { return code_; }
  /// File, node, line or option at fault; may be empty.
  const std::string& where() const { return where_; }
  /// What would work; may be empty.
  const std::string& hint() const { return hint_; }

 private:
  Exit code_;
  std::string where_;
  std::string hint_;
};

inline Error bad_input(std::string what, std::string where = {}, std::string hint = {}) {
  return Error(Exit::bad_input, std::move(what), std::move(where), std::move(hint));
}
inline Error usage_error(std::string what, std::string where = {}, std::string hint = {}) {
  return Error(Exit::usage, std::move(what), std::move(where), std::move(hint));
}
inline Error environment_error(std::string what, std::string where = {}, std::string hint = {}) {
  return Error(Exit::environment, std::move(what), std::move(where), std::move(hint));
}

}  // namespace headroom
