#include "estimator/plan/checkpoint/kept_operators.h"

namespace headroom {

const std::vector<std::vector<std::string>>& kept_operators() {
  static const std::vector<std::string> attention{
      "aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_efficient_attention",
      "aten::_scaled_dot_product_cudnn_attention", "aten::_scaled_dot_product_flash_attention_for_cpu"};
  static const std::vector<std::string> heavy = [] {
    std::vector<std::string> all{"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::convolution"};
    all.insert(all.end(), attention.begin(), attention.end());
    return all;
  }();
  static const std::vector<std::vector<std::string>> lists{attention, heavy};
  return lists;
}

}  // namespace headroom
