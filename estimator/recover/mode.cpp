#include "estimator/recover/mode.h"

namespace headroom::recovery {

Mode mode_of(const GraphView& graph, const Origins& origins) {
  Mode mode;
  bool batch_norm = false, convolution = false, attention = false;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    const std::string_view op = graph.op(n);
    if (op == "Conv" || op == "ConvTranspose") {
      convolution = true;
      if (graph.name(graph.input(n, 1)).starts_with("onnx::Conv")) mode.exported_eval = true;
    } else if (op == "BatchNormalization") {
      batch_norm = true;
      if (graph.node(n).integer("training_mode", 0) == 1) mode.exported_training = true;
    } else if (op == "Dropout") {
      const auto training = graph.number(graph.input(n, 2));
      if (training && *training != 0) mode.exported_training = true;
    } else if (op == "RandomUniformLike" || op == "Bernoulli") {
      mode.exported_training = true;
    } else if (op == "Softmax" || op == "LayerNormalization") {
      attention = true;
    }
    mode.torch_names = mode.torch_names || graph.node(n).name.starts_with('/');
  }
  for (const FxGroup& g : origins.groups()) {
    const std::string_view t = g.fx.target;
    if (t.starts_with("aten.native_dropout") || t.starts_with("aten._native_batch_norm_legit_functional") ||
        t.starts_with("aten.bernoulli") || t.starts_with("aten.rand")) {
      mode.exported_training = true;
    } else if (t.starts_with("aten._native_batch_norm_legit_no_training")) {
      mode.exported_eval = true;
      batch_norm = true;
    }
    batch_norm = batch_norm || t.starts_with("aten._native_batch_norm_legit") || t.starts_with("aten.batch_norm");
  }
  if (mode.exported_training) mode.exported_eval = false;
  mode.torch_names = mode.torch_names || origins.has_text();
  mode.conv_net = batch_norm || (convolution && !attention);
  for (const Initializer* i : graph.initializers())
    if (is_half(i->tensor.dtype) && i->tensor.dims.size() == 2) mode.low_precision_file = true;
  return mode;
}

}  // namespace headroom::recovery
