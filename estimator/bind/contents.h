// Contents: the numbers of a small tensor, read from the file.
#pragma once

#include <cstdint>
#include <memory>

#include "estimator/bind/shaped_graph.h"
#include "estimator/read/graph.h"

namespace headroom {

/// Elements of a tensor that is small enough to matter for shapes (4096 indices, 256 other numbers); null when it is
/// larger, has no bytes, or holds a type without numbers.
std::shared_ptr<const KnownContents> contents_of(const Model& model, const TensorData& tensor);

/// A whole value: dtype, dims, contents. `contents` only when known.
ShapedValue value_of(const Model& model, const TensorData& tensor);

/// `value` as a tensor of integer type `dtype` would hold it (two's complement, 0 or 1 for bool).
std::int64_t wrapped(DType dtype, std::int64_t value);
/// `value` rounded to what a tensor of floating-point type `dtype` can hold (float32 for the 16-bit types).
double rounded(DType dtype, double value);
/// Whether folding keeps contents of this type: booleans, integers, floating-point numbers of 16 bits and more.
bool has_contents(DType dtype);
/// Whether a tensor of this type and size may carry contents.
bool foldable(DType dtype, const Dims& dims);

}  // namespace headroom
