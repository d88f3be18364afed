// NameIndex: the numbers of named things, by name.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom {

/// A hash table that holds no names: the caller says which name a number has. (In std::unordered_map each of some
/// thousand entries is an allocation.)
template <class NameOf>
class NameIndex {
 public:
  explicit NameIndex(NameOf name_of) : name_of_(std::move(name_of)) {}
  static constexpr std::int32_t none = -1;

  bool empty() const { return slots_.empty(); }
  void reserve(std::size_t count) {
    std::size_t size = 16;
    while (size < 2 * count) size *= 2;
    if (size > slots_.size()) resize(size);
  }
  std::int32_t find(std::string_view name) const {
    return slots_.empty() ? none : slots_[place_of(name, hash_of(name))].number;
  }
  /// The number that the name of `number` has: an earlier one of the same name, else this one from now on.
  std::int32_t insert(std::int32_t number) {
    reserve(++count_);
    const std::string_view name = name_of_(number);
    const std::uint32_t hash = hash_of(name);
    Slot& slot = slots_[place_of(name, hash)];
    if (slot.number == none) slot = {hash, number};
    return slot.number;
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    std::int32_t number = none;
  };
  static std::uint32_t hash_of(std::string_view name) {
    return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name));
  }
  std::size_t place_of(std::string_view name, std::uint32_t hash) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash & mask;
    while (slots_[i].number != none && (slots_[i].hash != hash || name_of_(slots_[i].number) != name))
      i = (i + 1) & mask;
    return i;
  }
  void resize(std::size_t size) {
    std::vector<Slot> wider(size);
    for (const Slot& slot : slots_) {
      if (slot.number == none) continue;
      std::size_t i = slot.hash & (size - 1);
      while (wider[i].number != none) i = (i + 1) & (size - 1);
      wider[i] = slot;
    }
    slots_.swap(wider);
  }

  NameOf name_of_;
  std::vector<Slot> slots_;  // open addressing, at most half full, size a power of two
  std::size_t count_ = 0;
};

}  // namespace headroom
