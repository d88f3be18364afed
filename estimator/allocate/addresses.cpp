#include <map>
#include <set>

#include "estimator/allocate/allocator.h"

namespace headroom {
namespace {

constexpr std::int64_t chunk = 32 * MiB;

class DriverAddresses final : public AddressModel {
 public:
  explicit DriverAddresses(Address top) : lowest_(top / chunk * chunk) {}

  Address place_segment(std::int64_t size) override {
    if (size < chunk) {
      // Tightest hole, the newest of equals: holes lie in chunks that were made downwards, so the lowest address.
      if (auto hole = by_size_.lower_bound({size, 0}); hole != by_size_.end()) {
        const auto [hole_size, address] = *hole;
        remove_hole(address, hole_size);
        if (hole_size > size) add_hole(address + static_cast<Address>(size), hole_size - size);
        return address;
      }
    }
    const std::int64_t whole = Bytes(size).rounded_up(chunk).count();
    const Address address = below(whole);
    if (whole > size) add_hole(address + static_cast<Address>(size), whole - size);
    return address;
  }

  void remove_segment(Address address, std::int64_t size) override {
    // What lies free side by side is one hole again; whole chunks go back to the driver and leave the map.
    Address begin = address;
    Address end = address + static_cast<Address>(size);
    if (auto next = by_address_.find(end); next != by_address_.end()) {
      end += static_cast<Address>(next->second);
      remove_hole(next->first, next->second);
    }
    if (auto prev = by_address_.lower_bound(begin); prev != by_address_.begin()) {
      --prev;
      if (prev->first + static_cast<Address>(prev->second) == begin) {
        begin = prev->first;
        remove_hole(prev->first, prev->second);
      }
    }
    constexpr Address unit = static_cast<Address>(chunk);
    const Address first_chunk = (begin + unit - 1) / unit * unit;
    const Address last_chunk = end / unit * unit;
    if (first_chunk >= last_chunk) {
      add_hole(begin, static_cast<std::int64_t>(end - begin));
      return;
    }
    if (begin < first_chunk) add_hole(begin, static_cast<std::int64_t>(first_chunk - begin));
    if (last_chunk < end) add_hole(last_chunk, static_cast<std::int64_t>(end - last_chunk));
    give_back(first_chunk, static_cast<std::int64_t>(last_chunk - first_chunk));
  }

  Address place_reservation(std::int64_t size) override {
    const Address address = next_reservation_;
    next_reservation_ += static_cast<Address>(Bytes(size).rounded_up(chunk).count());
    return address;
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

  void add_hole(Address address, std::int64_t size) {
    by_address_.emplace(address, size);
    by_size_.emplace(size, address);
  }
  void remove_hole(Address address, std::int64_t size) {
    by_address_.erase(address);
    by_size_.erase({size, address});
  }

  Address lowest_;                                      // of all chunks so far
  Address next_reservation_ = Address{1} << 40;         // far below them
  std::map<Address, std::int64_t> by_address_;          // holes in chunks that are in use
  std::set<std::pair<std::int64_t, Address>> by_size_;  // the same
  std::map<Address, std::int64_t> free_chunks_;         // whole chunks above lowest_ that went back
};

}  // namespace

std::unique_ptr<AddressModel> driver_addresses(Address top) { return std::make_unique<DriverAddresses>(top); }

}  // namespace headroom
