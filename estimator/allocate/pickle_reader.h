// read_pickle: Python's pickle, protocols 0 to 5, without Python.
#pragma once

#include <string>
#include <string_view>

#include "estimator/allocate/plain_data.h"

namespace headroom {

/// Reads dicts, lists, tuples, sets, numbers, texts and bytes. Nothing is executed: an opcode that would import, call
/// or build anything is refused. Time and memory are linear in the bytes that are there; a length that a file only
/// claims costs nothing. Throws Error (bad input), `where` naming the file and offset. The result refers to `bytes`.
PlainData read_pickle(std::string_view bytes, const std::string& file);

}  // namespace headroom
