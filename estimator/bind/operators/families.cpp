#include "estimator/bind/operators/families.h"

#include <array>
#include <unordered_map>
#include <vector>

#include "estimator/base/text.h"

namespace headroom {
namespace {

struct Name {
  std::string_view domain;
  std::string_view op_type;
  bool operator==(const Name&) const = default;
};
struct NameHash {
  std::size_t operator()(const Name& n) const {
    const std::hash<std::string_view> hash;
    return n.domain.empty() ? hash(n.op_type) : hash(n.op_type) ^ (hash(n.domain) << 1);
  }
};

const std::unordered_map<Name, ShapeRule, NameHash>& rules() {
  static const auto table = [] {
    std::unordered_map<Name, ShapeRule, NameHash> t;
    t.reserve(512);
    for (const auto& family : operator_families())
      for (const auto& rule : family.rules) t.emplace(Name{family.domain, rule.op_type}, rule.rule);
    return t;
  }();
  return table;
}

}  // namespace

std::span<const OperatorFamily> operator_families() {
  static const std::array families = {
      OperatorFamily{"arithmetic", "", arithmetic_rules()},
      OperatorFamily{"pointwise", "", pointwise_rules()},
      OperatorFamily{"generator", "", generator_rules()},
      OperatorFamily{"layout", "", layout_rules()},
      OperatorFamily{"indexing", "", indexing_rules()},
      OperatorFamily{"reduction", "", reduction_rules()},
      OperatorFamily{"linear", "", linear_rules()},
      OperatorFamily{"convolution", "", convolution_rules()},
      OperatorFamily{"pooling", "", pooling_rules()},
      OperatorFamily{"normalization", "", normalization_rules()},
      OperatorFamily{"recurrent", "", recurrent_rules()},
      OperatorFamily{"attention", "", attention_rules()},
      OperatorFamily{"image", "", image_rules()},
      OperatorFamily{"signal", "", signal_rules()},
      OperatorFamily{"quantization", "", quantization_rules()},
      OperatorFamily{"sequence", "", sequence_rules()},
      OperatorFamily{"loss", "", loss_rules()},
      OperatorFamily{"string", "", string_rules()},
      OperatorFamily{"machine_learning", "ai.onnx.ml", machine_learning_rules()},
      OperatorFamily{"training", "ai.onnx.preview.training", training_rules()},
      OperatorFamily{"preview", "ai.onnx.preview", preview_rules()},
      OperatorFamily{"microsoft", "com.microsoft", microsoft_rules()},
  };
  return families;
}

ShapeRule shape_rule(std::string_view domain, std::string_view op_type) {
  const auto found = rules().find({domain, op_type});
  return found == rules().end() ? nullptr : found->second;
}

std::string_view nearest_operator(std::string_view op_type) {
  std::vector<std::string_view> names = {"If", "Loop", "Scan", "SequenceMap"};
  for (const auto& family : operator_families())
    for (const auto& rule : family.rules) names.push_back(rule.op_type);
  return nearest(op_type, names);
}

}  // namespace headroom
