// A synthetic model with the metadata that PyTorch's dynamo exporter writes.
#pragma once

#include <string>

namespace headroom::bench {

/// Residual blocks of layer norm and two linear layers, five nodes each, on float32 [batch, 64]; about `nodes` nodes.
/// The weights are left out of the file.
std::string chain(int nodes);

}  // namespace headroom::bench
