// Diagnostic: something the result must say, with the bytes it may be worth.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/bytes.h"

namespace headroom {

enum class Severity { info, warning, error };

/// What could not be modelled or had to be assumed. `bound` is how many bytes the figure can be short by because of it
/// (0: none, or said for information only).
struct Diagnostic {
  std::string code;  ///< stable, kebab-case: "dropout-assumed", "operator-by-bound"
  Severity severity = Severity::info;
  std::string node;  ///< node or module path; may be empty
  std::string message;
  Bytes bound{};
};

/// Collects diagnostics; the same code and message from many nodes is kept once with its count and summed bound by
/// `report`, so adding is cheap and never judged here.
using Diagnostics = std::vector<Diagnostic>;

}  // namespace headroom
