// Typed data: tensor elements in the typed fields of a TensorProto (float_data, int32_data, ...).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "estimator/base/dtype.h"
#include "estimator/read/arena.h"

namespace headroom {

/// Elements of the TensorProto `message` as little-endian packed bytes, as `raw_data` would hold them. Empty when the
/// typed fields do not hold exactly `expected_bytes`. Throws WireError.
std::span<const std::byte> decode_typed_data(std::string_view message, DType dtype, std::size_t expected_bytes,
                                             Arena& arena);

}  // namespace headroom
