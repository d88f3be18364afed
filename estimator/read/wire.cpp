#include "estimator/read/wire.h"

namespace headroom {

std::uint64_t Wire::long_varint() {
  const char* begin = at_;
  std::uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at_ == end_) throw WireError{begin, "a number is cut"};
    const auto byte = static_cast<unsigned char>(*at_++);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  throw WireError{begin, "a number is longer than ten bytes"};
}

void Wire::skip_group(std::uint64_t key) {
  constexpr std::size_t max_depth = 64;
  std::array<std::uint64_t, max_depth> open{};
  std::size_t depth = 0;
  open[depth++] = key >> 3;
  while (depth > 0) {
    const char* begin = at_;
    const std::uint64_t inner = varint();
    switch (static_cast<WireType>(inner & 7)) {
      case WireType::varint:
        varint();
        break;
      case WireType::fixed64:
        fixed<std::uint64_t>();
        break;
      case WireType::fixed32:
        fixed<std::uint32_t>();
        break;
      case WireType::bytes:
        bytes();
        break;
      case WireType::group:
        if (depth == max_depth) throw WireError{begin, "groups nested too deep"};
        open[depth++] = inner >> 3;
        break;
      case WireType::group_end:
        if (open[--depth] != inner >> 3) throw WireError{begin, "a group ends that was not begun"};
        break;
      default:
        throw WireError{begin, "unknown kind of field"};
    }
  }
}

}  // namespace headroom
