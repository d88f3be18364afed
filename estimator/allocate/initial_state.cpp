#include "estimator/allocate/initial_state.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>

namespace headroom {
namespace {

struct LiveBlock {
  std::int64_t size = -1;  // -1: freed during the history, so only its request is known
  std::int64_t requested = 0;
  BlockState state = BlockState::active_allocated;
  std::int32_t context = -1;
};
struct Range {
  std::int64_t size = 0;
  Stream stream = 0;
  PoolId pool = 0;
  bool small_pool = false;
  bool expandable = false;
};

Address plus(Address address, std::int64_t n) { return address + static_cast<Address>(n); }

class Undo {
 public:
  Undo(const History& history, const AllocatorOptions& options) : history_(history), options_(options) {}

  InitialState run() {
    take_final_state();
    for (auto entry = history_.entries.rbegin(); entry != history_.entries.rend(); ++entry) undo(*entry);
    InitialState state;
    for (const auto& [address, range] : ranges_) state.segments.push_back(tile(address, range));
    state.contradictions = contradictions_ + static_cast<std::int64_t>(live_.size()) - placed_;
    return state;
  }

 private:
  void take_final_state() {
    for (const SegmentRecord& segment : history_.segments) {
      ranges_[segment.address] = {segment.size, segment.stream, segment.pool, segment.small_pool, segment.expandable};
      Address at = segment.address;
      for (const BlockRecord& block : segment.blocks) {
        if (block.state != BlockState::inactive) live_[at] = {block.size, block.requested, block.state, block.context};
        at = plus(at, block.size);
      }
    }
  }

  void undo(const TraceEntry& entry) {
    switch (entry.action) {
      case Action::alloc:
        if (live_.erase(entry.address) == 0 && history_.segments_have_blocks) ++contradictions_;
        break;
      case Action::free_completed:
        live_.try_emplace(entry.address, LiveBlock{-1, entry.size, BlockState::active_pending_free, entry.context});
        break;
      case Action::free_requested: {
        auto [block, is_new] = live_.try_emplace(entry.address, LiveBlock{-1, entry.size, {}, entry.context});
        block->second.state = BlockState::active_allocated;
        break;
      }
      case Action::segment_alloc:
        if (ranges_.erase(entry.address) == 0 && !history_.segments.empty()) ++contradictions_;
        break;
      case Action::segment_free:
        // Only the small pool's segments have 2 MiB.
        ranges_[entry.address] = {entry.size, entry.stream, entry.pool, entry.size == 2 * MiB, false};
        break;
      case Action::segment_map:
        subtract(entry);
        break;
      case Action::segment_unmap:
        add(entry);
        break;
      case Action::oom:
        break;
    }
  }

  /// Takes the mapped pages out of the range that holds them.
  void subtract(const TraceEntry& entry) {
    auto range = ranges_.upper_bound(entry.address);
    if (range == ranges_.begin()) return;
    --range;
    const Address begin = range->first;
    const Address end = plus(begin, range->second.size);
    const Address cut_end = plus(entry.address, entry.size);
    if (entry.address >= end || cut_end > end) {
      ++contradictions_;
      return;
    }
    Range rest = range->second;
    ranges_.erase(range);
    if (entry.address > begin) {
      rest.size = static_cast<std::int64_t>(entry.address - begin);
      ranges_[begin] = rest;
    }
    if (end > cut_end) {
      rest.size = static_cast<std::int64_t>(end - cut_end);
      ranges_[cut_end] = rest;
    }
  }

  void add(const TraceEntry& entry) {
    Range range{entry.size, entry.stream, entry.pool, entry.size % options_.large_segment_size != 0, true};
    // Reservations are far larger than what is mapped in them: the nearest range is of the same one.
    auto next = ranges_.lower_bound(entry.address);
    if (auto near = nearest_expandable(entry, next); near != ranges_.end()) range.small_pool = near->second.small_pool;
    Address begin = entry.address;
    if (next != ranges_.end() && next->second.expandable && plus(begin, range.size) == next->first) {
      range.size += next->second.size;
      next = ranges_.erase(next);
    }
    if (next != ranges_.begin()) {
      auto previous = std::prev(next);
      if (previous->second.expandable && plus(previous->first, previous->second.size) == begin) {
        begin = previous->first;
        range.size += previous->second.size;
        ranges_.erase(previous);
      }
    }
    ranges_[begin] = range;
  }

  std::map<Address, Range>::iterator nearest_expandable(const TraceEntry& entry,
                                                        std::map<Address, Range>::iterator next) {
    auto best = ranges_.end();
    Address distance = 0;
    const auto consider = [&](std::map<Address, Range>::iterator it) {
      if (!it->second.expandable || it->second.stream != entry.stream) return;
      const Address d = it->first > entry.address ? it->first - entry.address : entry.address - it->first;
      if (best == ranges_.end() || d < distance) {
        best = it;
        distance = d;
      }
    };
    if (next != ranges_.end()) consider(next);
    if (next != ranges_.begin()) consider(std::prev(next));
    return best;
  }

  SegmentRecord tile(Address address, const Range& range) {
    SegmentRecord segment{.address = address,
                          .size = range.size,
                          .stream = range.stream,
                          .pool = range.pool,
                          .small_pool = range.small_pool,
                          .expandable = range.expandable,
                          .blocks = {}};
    const Address end = plus(address, range.size);
    Address at = address;
    for (auto live = live_.lower_bound(address); live != live_.end() && live->first < end;) {
      const auto& [begin, block] = *live;
      ++live;
      const Address limit = live != live_.end() && live->first < end ? live->first : end;
      ++placed_;
      if (begin < at) {
        ++contradictions_;
        continue;
      }
      if (begin > at) segment.blocks.push_back({static_cast<std::int64_t>(begin - at), 0, BlockState::inactive, -1});
      const auto room = static_cast<std::int64_t>(limit - begin);
      const std::int64_t size = block.size > 0 ? std::min(block.size, room) : size_in(range, block.requested, room);
      segment.blocks.push_back({size, block.requested, block.state, block.context});
      at = plus(begin, size);
    }
    if (end > at) segment.blocks.push_back({static_cast<std::int64_t>(end - at), 0, BlockState::inactive, -1});
    return segment;
  }

  /// Size of a block of which the request is known and the room up to the next block that is not free. What was not
  /// worth splitting belongs to it: a free block of the large pool is never that small.
  std::int64_t size_in(const Range& range, std::int64_t requested, std::int64_t room) const {
    const std::int64_t size = std::min(room, options_.round_size(requested));
    const std::int64_t rest = room - size;
    if (range.small_pool || range.expandable) return size;
    return rest <= 1 * MiB || size >= options_.max_split_size ? room : size;
  }

  const History& history_;
  const AllocatorOptions& options_;
  std::map<Address, Range> ranges_;
  std::map<Address, LiveBlock> live_;
  std::int64_t contradictions_ = 0;
  std::int64_t placed_ = 0;
};

}  // namespace

InitialState initial_state(const History& history, const AllocatorOptions& options) {
  return Undo(history, options).run();
}

}  // namespace headroom
