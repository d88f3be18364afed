#include "estimator/allocate/async.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "estimator/allocate/oom_text.h"

namespace headroom {
namespace {

constexpr std::int64_t chunk_size = 32 * MiB;
constexpr std::int64_t alignment = 512;
constexpr std::int64_t more_than_any_card = 1LL << 46;
// Up to here a request is cut from the largest free piece, above from the tightest: what came nearest to the recorded
// runs.
constexpr std::int64_t loose_fit_up_to = 3 * MiB / 2;

}  // namespace

AsyncAllocator::AsyncAllocator(const AllocatorOptions& options, const AllocatorDevice& device)
    : options_(options), device_(device) {
  if (options_.per_process_memory_fraction < 1) set_memory_fraction(options_.per_process_memory_fraction);
}

BlockId AsyncAllocator::allocate(Bytes requested, Stream stream, PoolId) {
  const std::int64_t bytes = requested.count();
  if (bytes <= 0) return BlockId::null;
  const std::int64_t size = requested.rounded_up(alignment).count();
  const std::int64_t allocated = stats_.allocated_bytes.all.current;
  const std::int64_t capacity =
      device_.total == Bytes(0) ? more_than_any_card : device_.total.count() - device_.outside.count();
  // PyTorch compares the requested bytes with its own limit; the driver refuses when the card is full.
  const bool over_limit = limit_ > 0 && checked_add(allocated, bytes) > limit_;
  const bool over_card = checked_add(allocated, size) > capacity;
  if (over_limit || over_card) {
    ++stats_.num_ooms;
    const std::int64_t free = std::max<std::int64_t>(0, capacity - stats_.reserved_bytes.all.current);
    oom_ = {.requested = requested,
            .rounded = Bytes(size),
            .segment = requested,
            .device_free = Bytes(free),
            .text = fmt::format("Allocation on device {} would exceed allowed memory. (out of memory)\n"
                                "Currently allocated     : {}\nRequested               : {}\n"
                                "Device limit            : {}\nFree (according to CUDA): {}\n"
                                "PyTorch limit (set by user-supplied memory fraction)\n"
                                "                        : {}",
                                device_.index, oom_size(allocated), oom_size(bytes), oom_size(device_.total.count()),
                                oom_size(free), oom_size(limit_ > 0 ? limit_ : device_.total.count()))};
    if (trace_ != nullptr) trace_->add(Action::oom, static_cast<Address>(free), size, stream, 0);
    return BlockId::out_of_memory;
  }

  std::uint32_t id = 0;
  if (spare_.empty()) {
    id = static_cast<std::uint32_t>(blocks_.size());
    blocks_.emplace_back();
  } else {
    id = spare_.back();
    spare_.pop_back();
  }
  const std::int64_t begin = place(size);
  count_used(begin, size, 1);
  blocks_[id] = {begin, size, bytes, true};
  // The driver's figures are what PyTorch reports: used for allocated and active, no others.
  stats_.allocated_bytes.all.increase(bytes);
  stats_.active_bytes.all.increase(bytes);
  if (trace_ != nullptr) trace_->add(Action::alloc, static_cast<Address>(begin), bytes, stream, 0);
  return BlockId{id};
}

void AsyncAllocator::free(BlockId id) {
  if (id == BlockId::null) return;
  Block& block = blocks_.at(static_cast<std::uint32_t>(id));
  if (!block.allocated) throw std::logic_error("AsyncAllocator::free of a block that is not allocated");
  block.allocated = false;
  count_used(block.begin, block.size, -1);
  add_piece(block.begin, block.size);
  spare_.push_back(static_cast<std::uint32_t>(id));
  stats_.allocated_bytes.all.decrease(block.requested);
  stats_.active_bytes.all.decrease(block.requested);
  if (stats_.allocated_bytes.all.current == 0) {  // one piece again
    pieces_.clear();
    by_size_.clear();
    tail_ = 0;
  }
  if (trace_ != nullptr) {
    trace_->add(Action::free_requested, static_cast<Address>(block.begin), block.requested, 0, 0);
    trace_->add(Action::free_completed, static_cast<Address>(block.begin), block.requested, 0, 0);
  }
}

// The driver orders a free after the work of other streams by events, without holding the bytes back.
void AsyncAllocator::record_stream(BlockId, Stream) {}
void AsyncAllocator::complete(BlockId) {}

std::int64_t AsyncAllocator::place(std::int64_t size) {
  std::int64_t piece = find_piece(size);
  if (piece < 0) {
    join_pieces();
    piece = find_piece(size);
  }
  if (piece >= 0) return take_piece(piece, size);
  if (room_at_tail() < size) grow_tail(size);
  return take_tail(size);
}

/// Begin of a backed free piece for `size` bytes; -1 when there is none.
std::int64_t AsyncAllocator::find_piece(std::int64_t size) const {
  if (size <= loose_fit_up_to) {
    for (auto it = by_size_.rbegin(); it != by_size_.rend() && it->first >= size; ++it) {
      if (backed(it->second, size)) return it->second;
    }
    return -1;
  }
  for (auto it = by_size_.lower_bound({size, 0}); it != by_size_.end(); ++it) {
    if (backed(it->second, size)) return it->second;
  }
  return -1;
}

std::int64_t AsyncAllocator::take_piece(std::int64_t begin, std::int64_t size) {
  const auto it = pieces_.find(begin);
  const std::int64_t whole = it->second;
  pieces_.erase(it);
  by_size_.erase({whole, begin});
  if (whole > size) add_piece(begin + size, whole - size);
  return begin;
}

std::int64_t AsyncAllocator::take_tail(std::int64_t size) {
  const std::int64_t begin = tail_;
  tail_ = checked_add(tail_, size);
  return begin;
}

std::int64_t AsyncAllocator::room_at_tail() const {
  auto chunk = static_cast<std::size_t>(tail_ / chunk_size);
  if (tail_ % chunk_size != 0 && !chunks_[chunk].backed) return 0;
  while (chunk < chunks_.size() && chunks_[chunk].backed) ++chunk;
  return static_cast<std::int64_t>(chunk) * chunk_size - tail_;
}

void AsyncAllocator::join_pieces() {
  std::map<std::int64_t, std::int64_t> joined;
  for (const auto& [begin, size] : pieces_) {
    if (!joined.empty() && joined.rbegin()->first + joined.rbegin()->second == begin) {
      joined.rbegin()->second += size;
    } else {
      joined.emplace_hint(joined.end(), begin, size);
    }
  }
  if (!joined.empty() && joined.rbegin()->first + joined.rbegin()->second == tail_) {
    tail_ = joined.rbegin()->first;
    joined.erase(std::prev(joined.end()));
  }
  pieces_.swap(joined);
  by_size_.clear();
  for (const auto& [begin, size] : pieces_) by_size_.emplace(size, begin);
}

void AsyncAllocator::grow_tail(std::int64_t size) {
  const auto first = static_cast<std::size_t>(tail_ / chunk_size);
  const auto last = static_cast<std::size_t>((checked_add(tail_, size) - 1) / chunk_size);
  if (chunks_.size() <= last) chunks_.resize(last + 1);
  std::int64_t missing = 0;
  for (std::size_t c = first; c <= last; ++c) missing += chunks_[c].backed ? 0 : 1;
  std::int64_t moved = 0;
  while (first_backed_ < first && !chunks_[first_backed_].backed) ++first_backed_;
  for (std::size_t c = first_backed_; c < first && moved < missing; ++c) {
    if (!chunks_[c].backed || chunks_[c].used != 0) continue;
    chunks_[c].backed = false;
    ++moved;
  }
  for (std::size_t c = first; c <= last; ++c) chunks_[c].backed = true;
  first_backed_ = std::min(first_backed_, first);
  set_reserved(stats_.reserved_bytes.all.current + (missing - moved) * chunk_size);
}

bool AsyncAllocator::backed(std::int64_t begin, std::int64_t size) const {
  for (auto c = static_cast<std::size_t>(begin / chunk_size);
       c <= static_cast<std::size_t>((begin + size - 1) / chunk_size); ++c) {
    if (!chunks_[c].backed) return false;
  }
  return true;
}

void AsyncAllocator::count_used(std::int64_t begin, std::int64_t size, std::int64_t sign) {
  const std::int64_t end = begin + size;
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t next = std::min(end, (at / chunk_size + 1) * chunk_size);
    chunks_[static_cast<std::size_t>(at / chunk_size)].used += sign * (next - at);
    at = next;
  }
}

void AsyncAllocator::add_piece(std::int64_t begin, std::int64_t size) {
  pieces_.emplace(begin, size);
  by_size_.emplace(size, begin);
}

void AsyncAllocator::set_reserved(std::int64_t bytes) {
  const std::int64_t change = bytes - stats_.reserved_bytes.all.current;
  if (change > 0) stats_.reserved_bytes.all.increase(change);
  if (change < 0) stats_.reserved_bytes.all.decrease(-change);
}

void AsyncAllocator::empty_cache() {
  std::int64_t kept = 0;
  for (Chunk& chunk : chunks_) {
    if (chunk.used == 0) chunk.backed = false;
    if (chunk.backed) ++kept;
  }
  set_reserved(kept * chunk_size);
}

void AsyncAllocator::set_memory_fraction(double fraction) {
  if (fraction < 1 && device_.total == Bytes(0)) throw fraction_without_card();
  limit_ = fraction < 1 ? static_cast<std::int64_t>(fraction * static_cast<double>(device_.total.count())) : 0;
}

Address AsyncAllocator::address(BlockId id) const {
  return static_cast<Address>(blocks_.at(static_cast<std::uint32_t>(id)).begin);
}
Bytes AsyncAllocator::block_size(BlockId id) const { return Bytes(blocks_.at(static_cast<std::uint32_t>(id)).size); }

OutOfMemory AsyncAllocator::last_oom() const { return oom_; }

}  // namespace headroom
