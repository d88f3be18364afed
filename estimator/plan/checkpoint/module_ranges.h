// ModuleRanges: where in a program each module runs, and which calls are whole modules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/program/program.h"

namespace headroom {

/// Modules beside each other in one list, "h.2", "h.3".
bool one_list(const std::vector<std::string>& modules);

/// Holds the program.
class ModuleRanges {
 public:
  explicit ModuleRanges(const Program& program);

  /// The modules that [begin, end) is exactly, outermost ones; empty when it is not.
  std::vector<std::string> of(std::size_t begin, std::size_t end) const;

  /// Whether a person can wrap [begin, end) as it is: one module, or neighbours in one list that hand one value on.
  bool can_be_wrapped(std::size_t begin, std::size_t end) const;

  static std::string_view parent(std::string_view path);

 private:
  /// Where all calls of a module are one stretch.
  struct Range {
    std::size_t begin = 0, end = 0, calls = 0;
  };
  struct Beginning {
    std::size_t end = 0;
    std::int32_t list = -1;
  };
  void find_lists();
  void find_values();

  const Program& program_;
  std::map<std::string, Range, std::less<>> ranges_;
  std::vector<std::vector<Beginning>> begins_;    ///< by call: modules that begin there
  std::vector<std::vector<std::int32_t>> lists_;  ///< by call: those with a module that ends in front of it
  std::vector<std::array<std::ptrdiff_t, 2>>
      latest_;  ///< by call: who made the newest values that are read from there on
};

}  // namespace headroom
