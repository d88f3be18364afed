// History: what a real process's allocator did, as recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/allocate/trace.h"
#include "estimator/base/bytes.h"

namespace headroom {

struct Frame {
  std::string filename;
  std::int64_t line = 0;
  std::string name;
};

/// The events of one device in order, with the state they ended in. Addresses are the recorded ones.
struct History {
  std::string file;
  int device = 0;
  std::string alloc_conf;                 ///< PYTORCH_ALLOC_CONF of the recording; empty: defaults, or not recorded
  std::optional<double> memory_fraction;  ///< set_per_process_memory_fraction, where the file says
  std::optional<Bytes> device_total;      ///< the card's memory, where the file says
  std::string torch_version;              ///< empty: not recorded

  std::vector<TraceEntry> entries;
  std::vector<SegmentRecord> segments;  ///< after the last entry
  bool segments_have_blocks = false;    ///< false: only where the segments are is known (or nothing, when empty)
  /// Peaks that the process itself reported; absent where the file holds none.
  struct Peaks {
    std::optional<std::int64_t> allocated, reserved, active, requested;
  } peaks;

  std::vector<Frame> frames;
  /// By TraceEntry::context and BlockRecord::context: indices into `frames`, innermost first.
  std::vector<std::vector<std::uint32_t>> stacks;

  /// "model.py:42 forward" of the innermost Python frame outside torch's own files; of a predicted history "gpt2.onnx
  /// aten::mm node_linear"; empty when there is none.
  std::string call_site(std::int32_t context) const;
};

/// Reads a PyTorch memory snapshot (pickle of torch.cuda.memory._dump_snapshot, or the same as JSON) or a JSON history
/// (`events`, `segments`); one History for each run or device in it that has events or segments. Throws Error (bad
/// input).
std::vector<History> read_histories(const std::string& path);
/// The same from memory; `file` is for messages.
std::vector<History> parse_histories(std::string_view bytes, const std::string& file);

}  // namespace headroom
