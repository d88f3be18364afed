// The left-hand side of a Python line.
#pragma once

#include <string_view>
#include <vector>

namespace headroom::recovery {

struct Statement {
  std::vector<std::string_view> names;  ///< what the line binds, in order; empty: nothing
  char augmented = 0;                   ///< '+' of "x += y"; 0 for "="
};

/// "a, b = f(x)" binds a and b; "x += y" binds x; "return x" binds nothing. A leading "for …: ", "if …: " or "def …: "
/// is skipped.
Statement parse_statement(std::string_view line);

/// "x = block(pool(x))" calls pool for an argument, not block: every call of `function` stands within another's
/// parentheses.
bool calls_for_argument(std::string_view line, std::string_view function);

}  // namespace headroom::recovery
