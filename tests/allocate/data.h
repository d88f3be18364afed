// Recorded histories for tests, unpacked from data/NAME.xz.
#pragma once

#include <string>
#include <vector>

namespace headroom {

/// All files of tests/allocate/data, names without ".xz", sorted.
std::vector<std::string> recorded_files();
/// The unpacked bytes (by the program xz).
std::string recorded_bytes(const std::string& name);

}  // namespace headroom
