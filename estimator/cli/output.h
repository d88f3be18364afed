// Output: where results go. A file appears whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace headroom::cli {

/// Writes to standard output, or to `path` through a temporary file beside it that is renamed when complete. Throws
/// Error(environment) when it cannot be written (no permission, disk full).
void write_result(std::string_view text, const std::string& path);

/// True when the descriptor is a terminal and NO_COLOR is not set.
bool colours_wanted(int descriptor);
/// Columns of the terminal; 100 when there is none.
int terminal_width();

}  // namespace headroom::cli
