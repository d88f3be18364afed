// The safetensors format: eight bytes of length, a JSON header (name → dtype, shape, offsets), the numbers.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "estimator/base/dims.h"
#include "estimator/base/dtype.h"

namespace headroom::runner {

struct StoredTensor {
  DType dtype = DType::undefined;
  Dims dims;
  std::string bytes;  ///< contiguous, little-endian
};
using StoredTensors = std::map<std::string, StoredTensor, std::less<>>;

/// Throws Error(bad_input) when the file cannot be read or is malformed.
StoredTensors read_safetensors(const std::string& path);
/// Throws Error(environment) when the file cannot be written.
void write_safetensors(const std::string& path, const StoredTensors& tensors);

}  // namespace headroom::runner
