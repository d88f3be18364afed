#include "estimator/read/names.h"

#include <cstring>

namespace headroom {
namespace {

std::uint32_t hash_of(std::string_view text) {
  std::uint64_t h = text.size() * 0x9E3779B97F4A7C15;
  const auto mix = [&h](std::uint64_t word) {
    h = (h ^ word) * 0xFF51AFD7ED558CCD;
    h ^= h >> 32;
  };
  while (text.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), 8);
    mix(word);
    text.remove_prefix(8);
  }
  std::uint64_t tail = 0;
  std::memcpy(&tail, text.data(), text.size());
  mix(tail);
  return static_cast<std::uint32_t>(h ^ h >> 29);
}

}  // namespace

Symbol Names::symbol_of(std::string_view text) {
  if (text.empty()) return {};
  if (2 * texts_.size() >= slots_.size()) grow();
  const std::uint32_t hash = hash_of(text);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    Slot& slot = slots_[i];
    if (!slot.symbol.valid()) {
      slot = {hash, Symbol(texts_.size())};
      texts_.push_back(copies_ != nullptr ? copied(text, *copies_) : text);
      return slot.symbol;
    }
    if (slot.hash == hash && text_of(slot.symbol) == text) return slot.symbol;
  }
}

void Names::grow() {
  std::pmr::vector<Slot> wider(2 * slots_.size(), Slot{}, slots_.get_allocator());
  const std::size_t mask = wider.size() - 1;
  for (const Slot& slot : slots_) {
    if (!slot.symbol.valid()) continue;
    std::size_t i = slot.hash & mask;
    while (wider[i].symbol.valid()) i = (i + 1) & mask;
    wider[i] = slot;
  }
  slots_.swap(wider);
}

}  // namespace headroom
