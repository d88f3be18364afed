// The ai.onnx.preview.training domain: optimisers written as operators.
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

/// (R, T, X1.., G1.., state1..) with `states` states for each tensor -> (new X1.., new state1..).
void optimizer(const NodeShaper& op, std::size_t states) {
  op.require(op.input_count() >= 2 && (op.input_count() - 2) % (2 + states) == 0,
             "the inputs are not R, T and " + std::to_string(2 + states) + " for each tensor");
  const std::size_t tensors = (op.input_count() - 2) / (2 + states);
  for (std::size_t i = 0; i < tensors; ++i) op.same_shape(i, 2 + i);
  for (std::size_t i = 0; i < tensors * states; ++i) op.same_shape(tensors + i, 2 + 2 * tensors + i);
}

void adagrad(const NodeShaper& op) { optimizer(op, 1); }
void momentum(const NodeShaper& op) { optimizer(op, 1); }
void adam(const NodeShaper& op) { optimizer(op, 2); }

/// Gradient: one output for each name in xs, with that input's shape; they are the first inputs.
void gradient(const NodeShaper& op) {
  for (std::size_t i = 0; i < op.output_count(); ++i) op.same_shape(i, i);
}

constexpr OperatorRule rules[] = {{"Adagrad", adagrad}, {"Adam", adam}, {"Momentum", momentum}, {"Gradient", gradient}};

}  // namespace

std::span<const OperatorRule> training_rules() { return rules; }

}  // namespace headroom
