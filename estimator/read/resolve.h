// resolve: names -> values, functions -> their nodes, file order -> topological order.
#pragma once

#include <string>

#include "estimator/read/arena.h"
#include "estimator/read/draft.h"
#include "estimator/read/graph.h"
#include "estimator/read/names.h"

namespace headroom {

struct Resolved {
  const Graph* graph = nullptr;
  std::vector<std::string_view> value_names;
};

/// Throws Error(bad_input) that names `file` and the node. The result lives in `arena` and where the draft's texts do.
Resolved resolve(const ModelDraft& draft, const Names& names, const std::string& file, const ReadLimits& limits,
                 CountedMemory& heap, Arena& arena, Diagnostics& diagnostics);

}  // namespace headroom
