#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "estimator/allocate/allocator.h"

namespace headroom {
namespace {

constexpr std::int64_t chunk = 32 * MiB;

/// The space that the driver maps when its context is made, and what of it is free: two ends at once, the rest when
/// the context grows with cuDNN's kernels.
constexpr std::int64_t context_space = 512 * MiB;
constexpr std::int64_t low_end = 414 * MiB, low_end_size = 2 * MiB;
constexpr std::int64_t high_end = 488 * MiB, high_end_size = 24 * MiB;

/// Free ranges; the lowest one that is large enough.
class Holes {
 public:
  void add(Address address, std::int64_t size) {
    by_address_.emplace(address, size);
    by_units_[units(size)].insert(address);
  }
  void remove(Address address) {
    const auto at = by_address_.find(address);
    by_units_[units(at->second)].erase(address);
    by_address_.erase(at);
  }
  const std::map<Address, std::int64_t>& by_address() const { return by_address_; }

  /// By address; the end when none is large enough.
  std::map<Address, std::int64_t>::const_iterator lowest_for(std::int64_t size) const {
    auto lowest = by_address_.end();
    for (std::size_t u = units(size); u < by_units_.size(); ++u)
      for (const Address address : by_units_[u]) {
        if (lowest != by_address_.end() && lowest->first < address) break;
        const auto hole = by_address_.find(address);
        if (hole->second < size) continue;
        lowest = hole;
        break;
      }
    return lowest;
  }

 private:
  static constexpr std::int64_t unit = 2 * MiB;
  static std::size_t units(std::int64_t size) { return static_cast<std::size_t>(std::min(size, chunk) / unit); }

  std::map<Address, std::int64_t> by_address_;
  std::array<std::set<Address>, chunk / unit + 1> by_units_;  ///< the last: of a chunk's size and more
};

class DriverAddresses final : public AddressModel {
 public:
  explicit DriverAddresses(std::optional<Address> below) {
    if (below) {
      lowest_ = *below / chunk * chunk;
      context_ = std::numeric_limits<Address>::max();
      grown_ = true;
      return;
    }
    holes_.add(context_ + static_cast<Address>(low_end), low_end_size);
    holes_.add(context_ + static_cast<Address>(high_end), high_end_size);
  }

  Address place_segment(std::int64_t size) override {
    if (const auto hole = holes_.lowest_for(size); hole != holes_.by_address().end()) {
      const auto [address, hole_size] = *hole;
      holes_.remove(address);
      if (hole_size > size) holes_.add(address + static_cast<Address>(size), hole_size - size);
      return address;
    }
    const std::int64_t whole = Bytes(size).rounded_up(chunk).count();
    const Address address = below(whole);
    if (whole > size) holes_.add(address + static_cast<Address>(size), whole - size);
    return address;
  }

  void remove_segment(Address address, std::int64_t size) override {
    // What lies free side by side is one hole again; whole chunks go back to the driver and leave the map.
    Address begin = address;
    Address end = address + static_cast<Address>(size);
    const auto& holes = holes_.by_address();
    if (const auto next = holes.find(end); next != holes.end()) {
      end += static_cast<Address>(next->second);
      holes_.remove(next->first);
    }
    if (auto prev = holes.lower_bound(begin); prev != holes.begin()) {
      --prev;
      if (prev->first + static_cast<Address>(prev->second) == begin) {
        begin = prev->first;
        holes_.remove(begin);
      }
    }
    constexpr Address unit = static_cast<Address>(chunk);
    const Address first_chunk = (begin + unit - 1) / unit * unit;
    const Address last_chunk = end / unit * unit;
    if (first_chunk >= last_chunk || begin >= context_) {
      holes_.add(begin, static_cast<std::int64_t>(end - begin));
      return;
    }
    if (begin < first_chunk) holes_.add(begin, static_cast<std::int64_t>(first_chunk - begin));
    if (last_chunk < end) holes_.add(last_chunk, static_cast<std::int64_t>(end - last_chunk));
    give_back(first_chunk, static_cast<std::int64_t>(last_chunk - first_chunk));
  }

  Address place_reservation(std::int64_t size) override {
    const Address address = next_reservation_;
    next_reservation_ += static_cast<Address>(Bytes(size).rounded_up(chunk).count());
    return address;
  }

  void cudnn_loaded() override {
    if (std::exchange(grown_, true)) return;
    std::int64_t free = low_end;
    const auto& holes = holes_.by_address();
    if (const auto next = holes.find(context_ + static_cast<Address>(free)); next != holes.end()) {
      free += next->second;
      holes_.remove(next->first);
    }
    holes_.add(context_, free);
  }

 private:
  /// Address space for `size` bytes of whole chunks: the highest free range, as the driver fills downwards.
  Address below(std::int64_t size) {
    for (auto range = free_chunks_.rbegin(); range != free_chunks_.rend(); ++range) {
      if (range->second < size) continue;
      const Address address = range->first + static_cast<Address>(range->second - size);
      if ((range->second -= size) == 0) free_chunks_.erase(range->first);
      return address;
    }
    lowest_ -= static_cast<Address>(size);
    return lowest_;
  }

  void give_back(Address address, std::int64_t size) {
    auto next = free_chunks_.lower_bound(address);
    if (next != free_chunks_.end() && address + static_cast<Address>(size) == next->first) {
      size += next->second;
      next = free_chunks_.erase(next);
    }
    if (next != free_chunks_.begin()) {
      auto prev = std::prev(next);
      if (prev->first + static_cast<Address>(prev->second) == address) {
        address = prev->first;
        size += prev->second;
        free_chunks_.erase(prev);
      }
    }
    if (address == lowest_) {
      lowest_ += static_cast<Address>(size);
    } else {
      free_chunks_.emplace(address, size);
    }
  }

  Address context_ =
      (Address{1} << 47) - static_cast<Address>(context_space);  // begin of its space; of a process under way: none
  bool grown_ = false;                                           // whether cuDNN's kernels are loaded
  Address lowest_ = context_;                                    // of all chunks so far
  Address next_reservation_ = Address{1} << 40;                  // far below them
  Holes holes_;                                                  // in chunks that are in use
  std::map<Address, std::int64_t> free_chunks_;                  // whole chunks above lowest_ that went back
};

}  // namespace

std::unique_ptr<AddressModel> driver_addresses(std::optional<Address> below) {
  return std::make_unique<DriverAddresses>(below);
}

}  // namespace headroom
