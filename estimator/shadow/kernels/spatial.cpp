#include "estimator/shadow/kernels/spatial.h"

#include <algorithm>

namespace headroom::shadow {

Dims spread(const Value& v, std::size_t n) {
  if (v.is_number()) return Dims(n, v.integer());
  const Dims& given = v.integers();
  return given.size() == 1 && n != 1 ? Dims(n, given[0]) : given;
}

Dims with_last(const Dims& sizes, const Dims& last) {
  Dims out = sizes;
  std::copy(last.begin(), last.end(), out.end() - static_cast<std::ptrdiff_t>(last.size()));
  return out;
}

MemoryFormat suggested_format(const Tensor& t) {
  return suggests_channels_last(*t) ? MemoryFormat::channels_last : MemoryFormat::contiguous;
}

Tensor empty_spatial(Shadow& m, const Dims& sizes, DType dtype, MemoryFormat format) {
  if (format == MemoryFormat::channels_last && (sizes.size() == 4 || sizes.size() == 5))
    return m.empty_strided(sizes, channels_last_strides(sizes), dtype);
  return m.empty(sizes, dtype);
}

bool wanted(const Value& mask, std::size_t i) {
  return mask.is_list() ? mask.list()[i].boolean() : mask.integers()[i] != 0;
}

std::string_view name_of(MemoryFormat format) {
  return format == MemoryFormat::channels_last ? "channels_last" : "contiguous_format";
}

}  // namespace headroom::shadow
