#include "estimator/step/labels.h"

#include <algorithm>

namespace headroom {

std::optional<Labels> labels_of(const Program& program, const Scenario& scenario) {
  if (scenario.loss == LossKind::sum || scenario.loss == LossKind::none) return std::nullopt;
  const Dims& out = program.outputs.front().dims;
  const bool like_an_input = std::any_of(program.inputs.begin(), program.inputs.end(), [&](const ProgramInput& i) {
    return i.passed && is_float(i.dtype) && i.dims == out;
  });
  if (scenario.loss == LossKind::mse || (!scenario.training() && like_an_input)) {
    const DType cast = scenario.module_dtype();
    return Labels{out, cast != DType::undefined ? cast : DType::f32};
  }
  Labels indices;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (i != (out.size() == 3 ? 2u : 1u)) indices.dims.push_back(out[i]);
  return indices;
}

}  // namespace headroom
