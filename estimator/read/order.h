// order: nodes of a graph into topological order.
#pragma once

#include <span>
#include <string>

#include "estimator/read/graph.h"

namespace headroom {

/// Reorders `nodes` of one graph so that each comes after those whose values it, or a graph inside it, reads; among
/// those that are free, the file's order is kept. Throws Error(bad_input) naming the nodes of a cycle.
void sort_topologically(std::span<Node> nodes, const std::string& file);

/// "'name' (Op)", or "#12 (Op)", its position in the file, for one without a name.
std::string label_of(const Node& node);

}  // namespace headroom
