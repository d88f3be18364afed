// Geometry of views (at::detail::computeStride, infer_size, expand).
#pragma once

#include <optional>

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

/// Replaces a -1 in `sizes` so that the product is `count`.
Dims infer_size(const Dims& sizes, std::int64_t count);
/// Strides with which `t` can be viewed as `sizes` without a copy; nullopt when it cannot.
std::optional<Dims> view_strides(const TensorImpl& t, const Dims& sizes);
/// `dim` counted from the front; dim in [-rank, rank-1].
std::size_t wrap_dim(std::int64_t dim, std::size_t rank);
/// An int[] argument; one number stands for a list of one, None for an empty list.
Dims dim_list(const Args& args, std::size_t i);
Tensor permuted(Shadow& m, const Tensor& t, const Dims& order);
Tensor transposed(Shadow& m, const Tensor& t, std::int64_t a, std::int64_t b);
/// With a dimension of size 1 in front of `dim` (counted in the result).
Tensor unsqueezed(Shadow& m, const Tensor& t, std::int64_t dim);
/// `length` places of `dim` from `start` on, `step` apart.
Tensor sliced(Shadow& m, const Tensor& t, std::size_t dim, std::int64_t start, std::int64_t length,
              std::int64_t step = 1);
/// Raw expand (kernel level); -1 keeps a size.
Tensor expanded(Shadow& m, const Tensor& t, const Dims& sizes);
/// Raw reshape: a view when possible, else a contiguous copy.
Tensor reshaped(Shadow& m, const Tensor& t, const Dims& sizes);

}  // namespace headroom::shadow
