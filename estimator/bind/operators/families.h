// The list of operator families: an operator's shape rule stands in its family's file, and nowhere else.
#pragma once

#include <span>
#include <string_view>

#include "estimator/bind/node_shaper.h"

namespace headroom {

struct OperatorFamily {
  std::string_view name;    ///< "convolution"
  std::string_view domain;  ///< "" for the standard domain
  std::span<const OperatorRule> rules;
};

/// Every family there is. Loop, Scan, If and SequenceMap have bodies, and stand in control_flow.cpp.
std::span<const OperatorFamily> operator_families();

/// The rule of an operator; null when there is none.
ShapeRule shape_rule(std::string_view domain, std::string_view op_type);

/// The operator whose name is nearest to `op_type`; empty when none is near.
std::string_view nearest_operator(std::string_view op_type);

/// Each is defined in operators/<name>.cpp.
std::span<const OperatorRule> arithmetic_rules();
std::span<const OperatorRule> pointwise_rules();
std::span<const OperatorRule> generator_rules();
std::span<const OperatorRule> layout_rules();
std::span<const OperatorRule> indexing_rules();
std::span<const OperatorRule> reduction_rules();
std::span<const OperatorRule> linear_rules();
std::span<const OperatorRule> convolution_rules();
std::span<const OperatorRule> pooling_rules();
std::span<const OperatorRule> normalization_rules();
std::span<const OperatorRule> recurrent_rules();
std::span<const OperatorRule> attention_rules();
std::span<const OperatorRule> image_rules();
std::span<const OperatorRule> signal_rules();
std::span<const OperatorRule> quantization_rules();
std::span<const OperatorRule> sequence_rules();
std::span<const OperatorRule> loss_rules();
std::span<const OperatorRule> string_rules();
std::span<const OperatorRule> machine_learning_rules();
std::span<const OperatorRule> training_rules();
std::span<const OperatorRule> preview_rules();
std::span<const OperatorRule> microsoft_rules();

}  // namespace headroom
