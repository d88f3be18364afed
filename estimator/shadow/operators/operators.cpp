#include <array>

#include "estimator/shadow/operator.h"

namespace headroom::shadow {

std::span<const std::span<const Operator>> operator_families() {
  static const std::array families{
      view_operators(),      copy_operators(),       elementwise_operators(), factory_operators(),
      reduction_operators(), matmul_operators(),     convolution_operators(), normalization_operators(),
      attention_operators(), indexing_operators(),   softmax_operators(),     loss_operators(),
      pooling_operators(),   resampling_operators(), random_operators(),      recurrent_operators(),
      optimizer_operators(),
  };
  return families;
}

}  // namespace headroom::shadow
