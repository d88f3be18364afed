// Dims: sizes or strides of a tensor; no heap below seven dimensions.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string>

#include "estimator/base/bytes.h"

namespace headroom {

using Dims = boost::container::small_vector<std::int64_t, 6>;

/// Product of the sizes; 1 for a scalar. Throws SizeOverflow (also when a zero stands beside an overflow: never wrong).
inline std::int64_t element_count(const Dims& sizes) {
  std::int64_t n = 1;
  for (const auto d : sizes)
    if (d == 0) return 0;
  for (const auto d : sizes) n = checked_mul(n, d);
  return n;
}

/// "[2, 3, 224]".
inline std::string text_of(const Dims& sizes) {
  std::string s = "[";
  for (std::size_t i = 0; i < sizes.size(); ++i) s += (i ? ", " : "") + std::to_string(sizes[i]);
  return s + "]";
}

}  // namespace headroom
