#include "estimator/recover/no_grad_blocks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "estimator/recover/stack_trace.h"

namespace headroom::recovery {

namespace {

/// File and line of the innermost frame, if the exporter made the code; empty: it did not.
struct MadeLine {
  std::string_view file, line;
};
MadeLine made_line(std::string_view trace) {
  const std::string_view frame = innermost_frame(trace);
  if (!frame.starts_with("<eval_with_key>")) return {};
  return {frame.substr(0, frame.find('"')), frame};
}

/// Calls `found` with each name of a cast's result, "to" or "to_1", and whether the line makes it.
template <class F>
void for_each_cast(std::string_view line, F&& found) {
  for (std::size_t at = line.find("to"); at != std::string_view::npos; at = line.find("to", at + 1)) {
    if (at == 0 || std::string_view(" (,").find(line[at - 1]) == std::string_view::npos) continue;
    std::size_t end = at + 2;
    if (end < line.size() && line[end] == '_')
      end = std::min(line.find_first_not_of("0123456789", end + 1), line.size());
    if (end < line.size() && std::string_view(",) =").find(line[end]) == std::string_view::npos) continue;
    found(line.substr(at, end - at), line.substr(end).starts_with(" = torch.ops"));
  }
}

}  // namespace

NoGradBlocks::NoGradBlocks(const GraphView& graph) {
  // Casts of what has the dtype already are in no node, but other lines read them.
  std::set<std::pair<std::string_view, std::string_view>> made, read;
  for (std::size_t n = 0; n < graph.size(); ++n) {
    const MadeLine line = made_line(graph.node(static_cast<NodeIndex>(n)).metadata.stack_trace);
    if (line.file.empty()) continue;
    files_.insert(line.file);
    for_each_cast(line.line,
                  [&](std::string_view name, bool is_made) { (is_made ? made : read).emplace(line.file, name); });
  }
  for (const auto& cast : read)
    if (!made.contains(cast)) files_.erase(cast.first);
}

bool NoGradBlocks::made(std::string_view stack_trace) const {
  return !files_.empty() && files_.contains(made_line(stack_trace).file);
}

}  // namespace headroom::recovery
