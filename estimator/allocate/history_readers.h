// The two kinds of file that read_histories knows, each from plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/allocate/history.h"
#include "estimator/allocate/plain_data.h"

namespace headroom {

/// No device holds more; sums of a million of these stay far below 64 bits.
inline constexpr std::int64_t most_recorded_bytes = std::int64_t{1} << 42;
/// And no address lies above.
inline constexpr std::int64_t highest_recorded_address = std::int64_t{1} << 57;

/// torch.cuda.memory._snapshot(): `segments`, `device_traces`, `allocator_settings`.
std::vector<History> histories_of_snapshot(const PlainData& data, const std::string& file);
/// {conf, fraction, total_memory, events: [[action, bytes, address, stream, frames]], segments, stats}, actions spelled
/// out or as letters: A alloc, F free, S segment_alloc; frames, where they are known, as one text:
/// "file.py:line:function < file.py:line:function".
History history_of_events(const PlainData& data, const PlainValue& run, const std::string& file);

/// Numbers streams by their handles, ascending, and pools as they come.
void number_streams(History& history, std::vector<std::int64_t> handles_of_entries,
                    std::vector<std::int64_t> handles_of_segments);

}  // namespace headroom
