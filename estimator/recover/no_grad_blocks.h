// Code that the exporter took out of a `with torch.no_grad()` block.
#pragma once

#include <string_view>
#include <unordered_set>

#include "estimator/recover/graph_view.h"

namespace headroom::recovery {

class NoGradBlocks {
 public:
  /// Such code has no other frame than its own, as that of a block without autocast, which casts what it reads.
  explicit NoGradBlocks(const GraphView& graph);
  NoGradBlocks() = default;

  /// Whether code of such a block made the node with this stack trace.
  bool made(std::string_view stack_trace) const;

 private:
  std::unordered_set<std::string_view> files_;
};

}  // namespace headroom::recovery
