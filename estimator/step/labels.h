// What a loop compares the model's first output with.
#pragma once

#include <optional>

#include "estimator/program/program.h"
#include "estimator/program/scenario.h"

namespace headroom {

struct Labels {
  Dims dims;
  DType dtype = DType::i64;
};

/// The labels that lie on the GPU beside the inputs; none for the losses sum and none. Class indices are int64, [B, S]
/// for logits [B, S, V], else the output's shape without its second dim; a regression's target has the output's shape.
/// Inference is taken as validation, which has labels too: a regression's where the output is shaped like an input.
std::optional<Labels> labels_of(const Program& program, const Scenario& scenario);

}  // namespace headroom
