// Folding: small tensors of known contents, moved and combined as the run would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "estimator/bind/contents.h"
#include "estimator/bind/node_shaper.h"

namespace headroom {

/// Row-major strides in elements.
Dims strides_of(const Dims& dims);

/// For every element of a tensor of shape `dims`, in row-major order: offset + the sum of index * stride.
Integers strided_elements(const Dims& dims, const Dims& strides, std::int64_t offset = 0);

/// For every element of an output: the element of an input of shape `dims` it comes from, when along each axis a the
/// output's coordinate i comes from the input's coordinate `coordinates[a][i]`.
Integers picked_elements(const Dims& dims, const std::vector<Integers>& coordinates);

/// 0, 1, ... n-1.
Integers counted(std::int64_t n);

/// Sets output `output` to shape `dims`; its contents are the elements `source()` of input `input` when that input is
/// known and the output small. `source` is called only then.
template <class Source>
void set_moved(const NodeShaper& op, std::size_t output, std::size_t input, Dims dims, Source source) {
  const ShapedValue& from = op.tensor(input);
  if (!from.contents || !foldable(from.dtype, dims)) {
    op.set(output, from.dtype, std::move(dims));
    return;
  }
  const Integers elements = source();
  const auto pick = [&elements](const auto& all) {
    auto picked = all;
    picked.resize(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) picked[i] = all[static_cast<std::size_t>(elements[i])];
    return picked;
  };
  if (is_float(from.dtype))
    op.set_known(output, from.dtype, std::move(dims), pick(from.contents->reals));
  else
    op.set_known(output, from.dtype, std::move(dims), pick(from.contents->integers));
}

/// The same elements in the same order under another shape.
inline void set_reshaped(const NodeShaper& op, std::size_t output, std::size_t input, Dims dims) {
  const ShapedValue& from = op.tensor(input);
  if (ShapedValue* to = op.set(output, from.dtype, std::move(dims))) to->contents = from.contents;
}

/// Elements of `dims` when the shape is broadcast to `out`.
Integers broadcast_elements(const Dims& dims, const Dims& out);

}  // namespace headroom
