// describe: a Graph as text, for `headroom inspect --stage graph`.
#pragma once

#include <string>

#include "estimator/read/graph.h"

namespace headroom {

/// One line each for the file, the inputs, the initializers, the nodes (name, operator, inputs -> outputs, attributes,
/// module scope) and the outputs; sub-graphs are indented below their node. Names are made harmless.
std::string describe(const Model& model);

}  // namespace headroom
