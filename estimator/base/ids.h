// Id<Tag>: an index that cannot be mixed up with another kind of index.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace headroom {

template <class Tag>
struct Id {
  std::int32_t index = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int32_t i) : index(i) {}
  constexpr explicit Id(std::size_t i) : index(static_cast<std::int32_t>(i)) {}

  /// False for "absent" (an empty name in ONNX, no module, ...).
  constexpr bool valid() const { return index >= 0; }
  constexpr std::size_t at() const { return static_cast<std::size_t>(index); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace headroom

template <class Tag>
struct std::hash<headroom::Id<Tag>> {
  std::size_t operator()(headroom::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.index); }
};
