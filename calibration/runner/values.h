// Values: the numbers in the tensors that the step makes: a file's, else random ones that are valid for the program.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>

#include "calibration/job/job.h"
#include "calibration/runner/safetensors.h"
#include "estimator/step/machine.h"

namespace headroom::runner {

class Values {
 public:
  explicit Values(const Job& job);

  /// Fills in place; makes no device memory but for a file's values of another dtype.
  void fill(at::Tensor& t, SlotId slot, const TensorSpec& spec) const;

 private:
  StoredTensors stored_;
  std::unordered_map<SlotId, std::int64_t> index_bounds_;
};

/// The numbers of `t`, brought to the host.
StoredTensor stored(const at::Tensor& t);

}  // namespace headroom::runner
