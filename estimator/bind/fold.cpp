#include "estimator/bind/fold.h"

#include <numeric>

namespace headroom {

Dims strides_of(const Dims& dims) {
  Dims strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

Integers strided_elements(const Dims& dims, const Dims& strides, std::int64_t offset) {
  Integers elements(static_cast<std::size_t>(element_count(dims)));
  const std::size_t outer = dims.empty() ? 0 : dims.size() - 1;
  const auto row = static_cast<std::size_t>(dims.empty() ? 1 : dims[outer]);
  const std::int64_t step = dims.empty() ? 0 : strides[outer];
  Dims index(outer, 0);
  std::int64_t at = offset;
  for (std::size_t begin = 0; begin < elements.size(); begin += row) {
    for (std::size_t i = 0; i < row; ++i) elements[begin + i] = at + static_cast<std::int64_t>(i) * step;
    for (std::size_t a = outer; a-- > 0;) {
      at += strides[a];
      if (++index[a] < dims[a]) break;
      at -= strides[a] * dims[a];
      index[a] = 0;
    }
  }
  return elements;
}

Integers picked_elements(const Dims& dims, const std::vector<Integers>& coordinates) {
  Integers elements = {0};
  for (std::size_t a = 0; a < dims.size(); ++a) {
    Integers next;
    next.reserve(elements.size() * coordinates[a].size());
    for (const auto e : elements)
      for (const auto c : coordinates[a]) next.push_back(e * dims[a] + c);
    elements = std::move(next);
  }
  return elements;
}

Integers counted(std::int64_t n) {
  Integers all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Integers broadcast_elements(const Dims& dims, const Dims& out) {
  const Dims own = strides_of(dims);
  Dims strides(out.size(), 0);
  const std::size_t skip = out.size() - dims.size();
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1) strides[skip + i] = own[i];
  return strided_elements(out, strides);
}

}  // namespace headroom
