// The left-hand side of a Python line.
#pragma once

#include <string_view>
#include <vector>

namespace headroom::recovery {

struct Statement {
  std::vector<std::string_view> names;  ///< what the line binds, in order; empty: nothing
  char augmented = 0;                   ///< '+' of "x += y"; 0 for "="
};

/// "a, b = f(x)" binds a and b; "x += y" binds x; "return x" binds nothing. A leading "for …: " or "if …: " is skipped.
Statement parse_statement(std::string_view line);

}  // namespace headroom::recovery
