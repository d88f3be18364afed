// Normalisations and dropout.
#include <algorithm>

#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

void unchanged(const NodeShaper& op) { op.same_shape(0, 0); }

/// BatchNormalization: running statistics (opset 14) or those and the saved ones (before) in the further outputs.
void batch_norm(const NodeShaper& op) {
  const Dims& x = op.dims(0);
  op.require(!x.empty(), "the input is a scalar");
  const std::int64_t channels = x.size() > 1 ? x[1] : 1;
  const Dims& scale = op.dims_of_rank(1, 1);
  if (op.node().integer("spatial", 1) != 0) op.same_size(channels, scale[0], "the channels of input and scale");
  op.same_shape(0, 0);
  for (std::size_t i = 1; i < op.output_count(); ++i) op.set(i, op.dtype(std::min<std::size_t>(i + 2, 4)), scale);
}

void instance_norm(const NodeShaper& op) {
  const Dims& x = op.dims(0);
  op.require(x.size() >= 2, "the input has no channels");
  op.same_size(x[1], op.dims_of_rank(1, 1)[0], "the channels of input and scale");
  op.same_shape(0, 0);
}

/// LayerNormalization(X, Scale, B) -> Y, Mean, InvStdDev; the statistics have 1 at the normalised axes.
void layer_norm(const NodeShaper& op) {
  const Dims& x = op.dims(0);
  const std::size_t axis = op.axis(op.node().integer("axis", -1), x.size());
  for (std::size_t i = 1; i <= 2; ++i)
    if (op.has(i)) op.require(op.broadcast(x, op.dims(i)) == x, "scale or bias does not broadcast to the input");
  Dims statistics = x;
  std::fill(statistics.begin() + static_cast<std::ptrdiff_t>(axis), statistics.end(), 1);
  const auto stash = op.node().integer("stash_type", 1);
  const DType dtype = known_dtype(stash) ? static_cast<DType>(stash) : DType::f32;
  op.same_shape(0, 0);
  op.set(1, dtype, statistics);
  op.set(2, dtype, statistics);
}

void group_norm(const NodeShaper& op) {
  const Dims& x = op.dims(0);
  const std::int64_t groups = op.node().integer("num_groups", 1);
  op.require(x.size() >= 2 && groups > 0 && x[1] % groups == 0, "the channels do not divide into the groups");
  op.same_shape(0, 0);
}

/// Dropout: the mask is bool from opset 10 on, of the data's type before.
void dropout(const NodeShaper& op) {
  op.same_shape(0, 0);
  op.set(1, op.opset() < 10 ? op.dtype(0) : DType::b8, op.dims(0));
}

constexpr OperatorRule rules[] = {
    {"BatchNormalization", batch_norm},
    {"InstanceNormalization", instance_norm},
    {"LayerNormalization", layer_norm},
    {"RMSNormalization", layer_norm},
    {"GroupNormalization", group_norm},
    // onnxruntime writes it into the standard domain.
    {"SimplifiedLayerNormalization", layer_norm},
    {"LRN", unchanged},
    {"MeanVarianceNormalization", unchanged},
    {"Dropout", dropout},
};

}  // namespace

std::span<const OperatorRule> normalization_rules() { return rules; }

}  // namespace headroom
