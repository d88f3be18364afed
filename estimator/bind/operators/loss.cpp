// Losses.
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

/// scores [N, C, ...], labels [N, ...] -> the labels' shape without reduction, else a scalar.
void loss(const NodeShaper& op) {
  const Dims &scores = op.dims(0), &labels = op.dims(1);
  op.require(scores.size() >= 2 && labels.size() + 1 == scores.size(), "the ranks of scores and labels do not match");
  op.same_size(scores[0], labels[0], "the batch sizes");
  op.set(0, op.dtype(0), op.node().text("reduction", "mean") == "none" ? labels : Dims{});
}

void cross_entropy(const NodeShaper& op) {
  loss(op);
  op.set(1, op.dtype(0), op.dims(0));
}

constexpr OperatorRule rules[] = {{"NegativeLogLikelihoodLoss", loss}, {"SoftmaxCrossEntropyLoss", cross_entropy}};

}  // namespace

std::span<const OperatorRule> loss_rules() { return rules; }

}  // namespace headroom
