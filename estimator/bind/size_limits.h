// Sizes beyond which a shape is a mistake: no model and no machine has such a tensor.
#pragma once

#include <cstdint>
#include <string>

#include "estimator/base/bytes.h"
#include "estimator/base/dims.h"
#include "estimator/base/dtype.h"

namespace headroom {

inline constexpr std::int64_t max_dimension = std::int64_t{1} << 39;
inline constexpr Bytes max_tensor_bytes{std::int64_t{1} << 47};
inline constexpr std::size_t max_rank = 64;

/// What is wrong with a tensor of these dims ("which has a negative dimension"); empty when nothing is.
inline std::string size_problem(DType dtype, const Dims& dims) {
  if (dims.size() > max_rank) return "more dimensions than any operator takes";
  for (const auto d : dims) {
    if (d < 0) return "which has a negative dimension";
    if (d > max_dimension) return "which has a dimension of more than 2^39";
  }
  try {
    const Bytes bytes = bytes_of(dtype, element_count(dims));
    if (bytes > max_tensor_bytes) return "more than 128 TiB";
  } catch (const SizeOverflow&) {
    return "more elements than 64 bits can count";
  }
  return {};
}

}  // namespace headroom
