// What kind of file this is: decided once, from signs that no rule may contradict later.
#pragma once

#include "estimator/recover/graph_view.h"
#include "estimator/recover/origins.h"

namespace headroom::recovery {

struct Mode {
  bool exported_training = false;  ///< dropout, batch statistics or random numbers are in the graph
  bool exported_eval = false;      ///< signs of an inference export; neither: the same program in both modes
  bool conv_net = false;           ///< convolutions without attention: activations are in place in the common libraries
  bool low_precision_file = false;  ///< matrices are stored in half precision, so casts in the graph are literal
  bool torch_names = false;         ///< scopes in node names, or metadata: the file comes from PyTorch
};

Mode mode_of(const GraphView& graph, const Origins& origins);

}  // namespace headroom::recovery
