// What each ONNX operator stands for when neither text nor a pattern says more: one handler an operator, one file a
// family. To add an operator: its handler in its family's list.
#pragma once

#include <span>
#include <string_view>

namespace headroom::recovery {

class Recovery;

struct OperatorHandler {
  std::string_view op_type;
  void (*lower)(Recovery&);
};
using OperatorFamily = std::span<const OperatorHandler>;

OperatorFamily arithmetic_operators();
OperatorFamily comparison_operators();
OperatorFamily activation_operators();
OperatorFamily shape_operators();
OperatorFamily indexing_operators();
OperatorFamily creation_operators();
OperatorFamily reduction_operators();
OperatorFamily matrix_operators();
OperatorFamily convolution_operators();
OperatorFamily pooling_operators();
OperatorFamily normalization_operators();
OperatorFamily cast_operators();
OperatorFamily image_operators();
OperatorFamily sequence_operators();
OperatorFamily quantized_operators();
OperatorFamily fused_operators();
OperatorFamily loss_operators();

/// Makes the calls of the node at hand; an operator without a handler becomes an empty tensor of its output's size, and
/// a diagnostic says so.
void lower_operator(Recovery& r);

}  // namespace headroom::recovery
