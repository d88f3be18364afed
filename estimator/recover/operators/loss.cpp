// Losses.
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

void loss(Recovery& r, std::string_view op) {
  const std::string_view reduction = r.onnx().text("reduction", "mean");
  const std::int64_t code = reduction == "none" ? 0 : reduction == "sum" ? 2 : 1;  // at::Reduction
  r.emit(op, {r.tensor(0), r.tensor(1), r.optional_tensor(2), code, r.onnx().integer("ignore_index", -100)});
}
void cross_entropy(Recovery& r) { loss(r, "aten::cross_entropy_loss"); }
void negative_log_likelihood(Recovery& r) { loss(r, "aten::nll_loss_nd"); }

constexpr std::array list{
    OperatorHandler{"SoftmaxCrossEntropyLoss", cross_entropy},
    OperatorHandler{"NegativeLogLikelihoodLoss", negative_log_likelihood},
};

}  // namespace

OperatorFamily loss_operators() { return list; }

}  // namespace headroom::recovery
