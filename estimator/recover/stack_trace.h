// Python stack traces, as `pkg.torch.onnx.stack_trace` holds them.
#pragma once

#include <string_view>
#include <vector>

namespace headroom::recovery {

/// A `forward` (or another Python function) on the stack while a node ran.
struct Frame {
  std::string_view file;
  std::string_view function;
  std::string_view line;    ///< line number, as text
  std::string_view source;  ///< the line itself, trimmed; empty where the trace has none
};

/// Text from the innermost frame's file name on, `x.py", line 7, in forward\n    y = x`; empty: the trace has no frame.
std::string_view innermost_frame(std::string_view trace);
/// The last line, trimmed: the innermost frame's source. Empty where the trace has none.
std::string_view innermost_source(std::string_view trace);

/// Reads one trace after the other. Neighbours begin alike: the frames of their common beginning are read once.
class StackTraceReader {
 public:
  /// The frames of `trace`, outermost first; valid until the next call. The text has to outlive the reader.
  const std::vector<Frame>& frames(std::string_view trace);

 private:
  std::string_view last_;
  std::vector<Frame> frames_;        ///< of `last_`
  std::vector<std::size_t> starts_;  ///< where each begins in it
};

}  // namespace headroom::recovery
