// recover: the eager PyTorch program that a graph stands for.
#pragma once

#include "estimator/bind/shaped_graph.h"
#include "estimator/program/program.h"

namespace headroom {

struct RecoverOptions {
  bool training = true;    ///< the mode asked for; an inference export is turned back into the training program
  bool fast_path = false;  ///< torch.nn's fused calls may be taken: in inference without autocast
  bool read_text = true;   ///< false: the operators alone tell the calls, the metadata only where they stand
};

/// Recovers the ATen calls that eager PyTorch makes for the module which `graph` was exported from, from the export's
/// metadata where there is any, else from patterns of operators. Every guess is a diagnostic with the bytes it may
/// cost. Throws Error(bad_input) only for an operator that has no meaning as a GPU program.
Program recover(const ShapedGraph& graph, const RecoverOptions& options);

}  // namespace headroom
