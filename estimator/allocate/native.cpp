#include "estimator/allocate/native.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "estimator/base/error.h"

namespace headroom {
namespace {

constexpr std::int64_t min_block_size = 512;
constexpr std::int64_t small_size = 1 * MiB;    // largest request of the small pool
constexpr std::int64_t small_buffer = 2 * MiB;  // segment of the small pool
constexpr std::int64_t one_exabyte = 1LL << 60;

std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return Bytes(n).rounded_up(unit).count(); }

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorOptions& options, const AllocatorDevice& device,
                                   std::unique_ptr<AddressModel> addresses)
    : options_(options), device_(device), addresses_(std::move(addresses)) {
  default_pools_ = &pools(0);
  if (options_.per_process_memory_fraction < 1) set_memory_fraction(options_.per_process_memory_fraction);
}

CachingAllocator::~CachingAllocator() {
  for (auto& [id, pair] : pools_) {
    for (Pool* pool : {&pair.small, &pair.large}) {
      pool->blocks.clear();
      pool->unmapped.clear();
    }
  }
}

// ---- sizes

bool CachingAllocator::should_split(const Block& block, std::int64_t size) const {
  const std::int64_t remaining = block.size - size;
  if (block.pool->small || options_.expandable_segments) return remaining >= min_block_size;
  return size < options_.max_split_size && remaining > small_size;
}

bool CachingAllocator::device_has(std::int64_t bytes) const {
  const std::int64_t total = device_.total == Bytes(0) ? one_exabyte : device_.total.count();
  return checked_add(checked_add(stats_.reserved_bytes.all.current, device_.outside.count()), bytes) <= total;
}

// ---- allocate

BlockId CachingAllocator::allocate(Bytes requested, Stream stream, PoolId pool_id) {
  const std::int64_t bytes = requested.count();
  if (bytes <= 0) return BlockId::null;
  if (bytes >= one_exabyte) {
    oom_ = OomState{.requested = bytes};
    return BlockId::out_of_memory;
  }
  const std::int64_t size = options_.round_size(bytes);
  PoolPair& pair = pool_id == 0 ? *default_pools_ : pools(pool_id);
  const Request request{size, options_.segment_size(size), stream, size <= small_size ? &pair.small : &pair.large};

  Block* block = find_free_block(request);
  if (block == nullptr) {
    if (collects_garbage()) collect_garbage();
    const bool over_limit =
        allowed_ && checked_add(stats_.reserved_bytes.all.current, request.segment_size) > *allowed_;
    if (over_limit && options_.throw_on_cudamalloc_oom) {
      ++stats_.num_oom_rejections;
      return refuse(request, bytes);
    }
    block = new_segment(request, false);
    if (block == nullptr && release_available_cached_blocks(request)) block = new_segment(request, false);
    if (block == nullptr) {
      release_cached_blocks();
      block = new_segment(request, true);
    }
    if (block == nullptr) return refuse(request, bytes);
  }
  return hand_out(request, block, bytes);
}

CachingAllocator::Block* CachingAllocator::find_free_block(const Request& request) {
  Pool& pool = *request.pool;
  if (collects_garbage()) ++pool.searches;
  auto found = pool.blocks.lower_bound(SizeKey{request.stream, request.size, 0}, BySize{});
  const auto ours = [&](auto it) { return it != pool.blocks.end() && it->stream == request.stream; };
  if (!ours(found)) return nullptr;

  if (found->expandable != nullptr) {
    if (options_.expandable_segments) {
      // A block before an unmapped range counts as large as it can grow, so a hole is taken before the growing tail.
      const auto growable = [](const Block& b) {
        return b.size + (b.next != nullptr && !b.next->mapped ? b.next->size : 0);
      };
      auto next = std::next(found);
      while (found->expandable != nullptr && ours(next) && growable(*next) < growable(*found)) found = next++;
    } else {
      do {
        ++found;
      } while (ours(found) && found->expandable != nullptr);
      if (!ours(found)) return nullptr;
    }
  }

  if (request.size < options_.max_split_size && found->size >= options_.max_split_size) return nullptr;
  if (request.size >= options_.max_split_size &&
      found->size >= checked_add(request.size, options_.max_non_split_rounding)) {
    return nullptr;
  }
  Block* block = &*found;
  pool.blocks.erase(found);
  return block;
}

CachingAllocator::Block* CachingAllocator::new_segment(const Request& request, bool retry) {
  if (retry) ++stats_.num_alloc_retries;
  const std::int64_t size = request.segment_size;
  if (allowed_ && checked_add(stats_.reserved_bytes.all.current, size) > *allowed_) return nullptr;
  if (options_.expandable_segments) return new_expandable_block(request);
  if (!device_has(size)) return nullptr;

  Block* block = new_block(request.pool, request.stream, addresses_->place_segment(size), size);
  stats_.segment.increase(request.pool->small, 1);
  stats_.reserved_bytes.increase(request.pool->small, size);
  if (size >= options_.max_split_size) stats_.oversize_segments.increase(1);
  ++stats_.num_device_alloc;
  trace(Action::segment_alloc, block->address, size, *block);
  return block;
}

BlockId CachingAllocator::hand_out(const Request& request, Block* block, std::int64_t requested) {
  Pool& pool = *request.pool;
  const bool was_split = block->is_split();
  const bool counts_inactive = block->expandable == nullptr;
  if (should_split(*block, request.size)) {
    Block* rest = new_block(&pool, block->stream, block->address + static_cast<Address>(request.size),
                            block->size - request.size);
    rest->expandable = block->expandable;
    link(rest, block->next);
    link(block, rest);
    block->size = request.size;
    insert_free(rest);
    if (counts_inactive) {
      if (was_split) {
        stats_.inactive_split_bytes.decrease(pool.small, block->size);
      } else {
        stats_.inactive_split_bytes.increase(pool.small, rest->size);
        stats_.inactive_split.increase(pool.small, 1);
      }
    }
  } else if (was_split && counts_inactive) {
    stats_.inactive_split_bytes.decrease(pool.small, block->size);
    stats_.inactive_split.decrease(pool.small, 1);
  }

  block->allocated = true;
  block->requested = requested;
  block->context = trace_ != nullptr ? trace_->context : -1;
  trace(Action::alloc, block->address, requested, *block);
  stats_.allocation.increase(pool.small, 1);
  stats_.allocated_bytes.increase(pool.small, block->size);
  stats_.active.increase(pool.small, 1);
  stats_.active_bytes.increase(pool.small, block->size);
  stats_.requested_bytes.increase(pool.small, requested);
  if (block->size >= options_.max_split_size) stats_.oversize_allocations.increase(1);
  return BlockId{block->id};
}

BlockId CachingAllocator::refuse(const Request& request, std::int64_t requested) {
  oom_ = OomState{.requested = requested,
                  .rounded = request.size,
                  .segment = request.segment_size,
                  .allowed = allowed_.value_or(-1),
                  .allocated = stats_.allocated_bytes.all.current,
                  .reserved = stats_.reserved_bytes.all.current};
  for (const auto& [id, pair] : pools_) {
    if (id == 0) continue;
    for (const Pool* pool : {&pair.small, &pair.large}) {
      for (const Block& block : pool->blocks) oom_.free_in_private_pools += block.size;
    }
  }
  ++stats_.num_ooms;
  if (trace_ != nullptr) {
    trace_->add(Action::oom, static_cast<Address>(last_oom().device_free.count()), request.size, request.stream,
                request.pool->id);
  }
  return BlockId::out_of_memory;
}

OutOfMemory CachingAllocator::last_oom() const {
  if (oom_.requested >= one_exabyte) {
    return {.requested = Bytes(oom_.requested),
            .rounded = {},
            .segment = {},
            .device_free = {},
            .text = "CUDA out of memory. Tried to allocate more than 1EB memory."};
  }
  return describe_oom(oom_, device_, options_.torch);
}

// ---- expandable segments

std::int64_t CachingAllocator::reservation_size(std::int64_t page) const {
  if (device_.address_space != Bytes(0)) return device_.address_space.rounded_up(page).count();
  const std::int64_t total = device_.total == Bytes(0) ? 1024 * GiB : device_.total.count();
  return rounded_up(checked_add(total, total / 8), page);
}

CachingAllocator::Block* CachingAllocator::find_expandable_block(const Request& request) {
  Pool& pool = *request.pool;
  const auto has_room = [&](const Block* block) {
    std::int64_t bytes = 0;
    for (; bytes < request.size && block != nullptr && block->is_free(); block = block->next) bytes += block->size;
    return bytes >= request.size;
  };
  // The lowest unmapped range of this stream, from the free block before it on.
  Block key;
  key.stream = request.stream;
  for (auto it = pool.unmapped.lower_bound(key); it != pool.unmapped.end() && it->stream == request.stream; ++it) {
    Block* candidate = &*it;
    if (candidate->prev != nullptr && candidate->prev->is_free()) candidate = candidate->prev;
    if (has_room(candidate)) return candidate;
  }
  const std::int64_t page = pool.small ? small_buffer : options_.large_segment_size;
  const std::int64_t size = reservation_size(page);
  if (request.size > size) return nullptr;
  expandable_segments_.push_back({addresses_->place_reservation(size), size, page});
  Block* block = new_block(&pool, request.stream, expandable_segments_.back().begin, size);
  block->mapped = false;
  block->expandable = &expandable_segments_.back();
  pool.unmapped.insert(*block);
  return block;
}

CachingAllocator::Block* CachingAllocator::new_expandable_block(const Request& request) {
  Block* block = find_expandable_block(request);
  if (block == nullptr) return nullptr;
  if (!block->mapped && !map_block(block, std::min(block->size, request.size))) return nullptr;
  while (block->size < request.size) {
    Block* unmapped = block->next;
    if (!map_block(unmapped, std::min(request.size - block->size, unmapped->size))) return nullptr;
    block = unmapped;
  }
  request.pool->blocks.erase(request.pool->blocks.iterator_to(*block));
  return block;
}

bool CachingAllocator::map_block(Block* block, std::int64_t size) {
  const std::int64_t mapped = rounded_up(size, block->expandable->page);
  if (!device_has(mapped)) return false;
  Pool& pool = *block->pool;
  pool.unmapped.erase(pool.unmapped.iterator_to(*block));
  block->mapped = true;
  const Address at = block->address;
  if (mapped < block->size) {
    Block* rest = new_block(&pool, block->stream, at + static_cast<Address>(mapped), block->size - mapped);
    rest->mapped = false;
    rest->expandable = block->expandable;
    link(rest, block->next);
    link(block, rest);
    block->size = mapped;
    pool.unmapped.insert(*rest);
  }
  try_merge(block, block->prev);
  try_merge(block, block->next);
  insert_free(block);
  stats_.reserved_bytes.increase(pool.small, mapped);
  ++stats_.num_device_alloc;
  trace(Action::segment_map, at, mapped, *block);
  return true;
}

void CachingAllocator::unmap_block(Block* block) {
  const ExpandableSegment& segment = *block->expandable;
  // Whole pages only; what is left at both ends stays mapped.
  const std::int64_t from = rounded_up(static_cast<std::int64_t>(block->address - segment.begin), segment.page);
  const std::int64_t to = static_cast<std::int64_t>(block->end() - segment.begin) / segment.page * segment.page;
  if (from >= to) return;
  const Address begin = segment.begin + static_cast<Address>(from);
  const std::int64_t size = to - from;
  Pool& pool = *block->pool;
  pool.blocks.erase(pool.blocks.iterator_to(*block));
  if (const auto before = static_cast<std::int64_t>(begin - block->address); before > 0) {
    Block* head = new_block(&pool, block->stream, block->address, before);
    head->expandable = block->expandable;
    link(block->prev, head);
    link(head, block);
    insert_free(head);
  }
  if (const auto after = static_cast<std::int64_t>(block->end() - begin) - size; after > 0) {
    Block* tail = new_block(&pool, block->stream, begin + static_cast<Address>(size), after);
    tail->expandable = block->expandable;
    link(tail, block->next);
    link(block, tail);
    insert_free(tail);
  }
  block->address = begin;
  block->size = size;
  block->mapped = false;
  try_merge(block, block->prev);
  try_merge(block, block->next);
  pool.unmapped.insert(*block);
  stats_.reserved_bytes.decrease(pool.small, size);
  ++stats_.num_device_free;
  trace(Action::segment_unmap, begin, size, *block);
}

// ---- free

void CachingAllocator::free(BlockId id) {
  if (id == BlockId::null) return;
  Block& block = block_of(id);
  if (!block.allocated) throw std::logic_error("CachingAllocator::free of a block that is not allocated");
  const bool small = block.pool->small;
  block.allocated = false;
  stats_.allocation.decrease(small, 1);
  stats_.allocated_bytes.decrease(small, block.size);
  if (block.size >= options_.max_split_size) stats_.oversize_allocations.decrease(1);
  trace(Action::free_requested, block.address, block.requested, block);
  if (block.used_elsewhere) {
    waiting_.push_back(&block);
  } else {
    free_block(&block);
  }
}

void CachingAllocator::free_block(Block* block) {
  trace(Action::free_completed, block->address, block->requested, *block);
  Pool& pool = *block->pool;
  const std::int64_t freed = block->size;
  std::int64_t inactive_blocks = 0;
  std::int64_t inactive_bytes = 0;
  // `block` stays, its neighbours go: prev first, as PyTorch does.
  for (const bool before : {true, false}) {
    if (const std::int64_t merged = try_merge(block, before ? block->prev : block->next); merged > 0) {
      --inactive_blocks;
      inactive_bytes -= merged;
    }
  }
  insert_free(block);
  if (block->is_split()) {
    ++inactive_blocks;
    inactive_bytes += block->size;
  }
  if (block->expandable == nullptr) {
    const auto change = [&](PoolStat& stat, std::int64_t by) {
      if (by > 0) stat.increase(pool.small, by);
      if (by < 0) stat.decrease(pool.small, -by);
    };
    change(stats_.inactive_split, inactive_blocks);
    change(stats_.inactive_split_bytes, inactive_bytes);
  }
  stats_.active.decrease(pool.small, 1);
  stats_.active_bytes.decrease(pool.small, freed);
  stats_.requested_bytes.decrease(pool.small, block->requested);
}

void CachingAllocator::link(Block* before, Block* after) {
  if (before != nullptr) before->next = after;
  if (after != nullptr) after->prev = before;
}

/// Bytes of `from`, which is no more; 0 when the two cannot be one.
std::int64_t CachingAllocator::try_merge(Block* into, Block* from) {
  if (from == nullptr || !from->is_free() || into->mapped != from->mapped) return 0;
  Pool& pool = *into->pool;
  if (from->mapped) {
    pool.blocks.erase(pool.blocks.iterator_to(*from));
  } else {
    pool.unmapped.erase(pool.unmapped.iterator_to(*from));
  }
  if (into->prev == from) {
    into->address = from->address;
    link(from->prev, into);
  } else {
    link(into, from->next);
  }
  const std::int64_t merged = from->size;
  into->size += merged;
  delete_block(from);
  return merged;
}

void CachingAllocator::insert_free(Block* block) {
  block->gc_base = block->pool->searches;
  block->pool->blocks.insert(*block);
}

// ---- other streams

void CachingAllocator::record_stream(BlockId id, Stream stream) {
  if (id == BlockId::null) return;
  Block& block = block_of(id);
  if (block.stream != stream) block.used_elsewhere = true;
}

void CachingAllocator::complete(BlockId id) {
  if (id == BlockId::null) return;
  const auto it = std::find(waiting_.begin(), waiting_.end(), &block_of(id));
  if (it == waiting_.end()) return;
  Block* block = *it;
  waiting_.erase(it);
  block->used_elsewhere = false;
  free_block(block);
}

void CachingAllocator::synchronize() {
  for (Block* block : waiting_) {
    block->used_elsewhere = false;
    free_block(block);
  }
  waiting_.clear();
}

// ---- giving memory back

void CachingAllocator::empty_cache() { release_cached_blocks(); }

void CachingAllocator::collect_garbage() {
  const auto threshold = static_cast<std::int64_t>(options_.garbage_collection_threshold * static_cast<double>(*allowed_));
  const std::int64_t target = stats_.reserved_bytes.all.current - threshold;
  if (target <= 0) return;
  Pool& pool = default_pools_->large;
  std::int64_t total_age = 0;
  std::int64_t candidates = 0;
  for (const Block& block : pool.blocks) {
    if (block.is_split()) continue;
    total_age += pool.searches - block.gc_base;
    ++candidates;
  }
  std::int64_t reclaimed = 0;
  bool freed = true;
  while (reclaimed < target && freed && candidates > 0) {
    const double average_age = static_cast<double>(total_age) / static_cast<double>(candidates);
    freed = false;
    // All that are old enough, also past the target, so that this does not come again soon.
    for (auto it = pool.blocks.begin(); it != pool.blocks.end();) {
      Block& block = *it++;
      const std::int64_t age = pool.searches - block.gc_base;
      if (block.is_split() || block.expandable != nullptr || static_cast<double>(age) < average_age) continue;
      freed = true;
      reclaimed += block.size;
      total_age -= age;
      --candidates;
      release_segment(&block);
    }
  }
}

bool CachingAllocator::release_available_cached_blocks(const Request& request) {
  const std::int64_t max_split = options_.max_split_size;
  if (max_split == AllocatorOptions::unlimited) return false;
  FreeBlocks& blocks = request.pool->blocks;
  const std::int64_t wanted = std::max(request.size, max_split);
  auto it = blocks.lower_bound(SizeKey{request.stream, wanted, 0}, BySize{});
  if (it != blocks.end() && it->stream == request.stream && it->expandable == nullptr) {
    release_segment(&*it);
    return true;
  }
  // No single block is enough: from the largest oversize block of the stream downwards.
  std::int64_t released = 0;
  while (it != blocks.begin() && released < wanted) {
    Block& block = *--it;
    if (block.size < max_split || block.stream != request.stream) break;
    if (block.expandable != nullptr) continue;
    it = std::next(it);
    released += block.size;
    release_segment(&block);
  }
  return released >= wanted;
}

void CachingAllocator::release_cached_blocks() {
  ++stats_.num_sync_all_streams;
  synchronize();
  release_blocks(default_pools_->large);
  release_blocks(default_pools_->small);
  for (auto& [id, pair] : pools_) {
    if (!pair.retired) continue;
    release_blocks(pair.small);
    release_blocks(pair.large);
  }
}

void CachingAllocator::release_blocks(Pool& pool) {
  std::vector<Block*> to_unmap;
  for (auto it = pool.blocks.begin(); it != pool.blocks.end();) {
    Block& block = *it++;
    if (block.expandable != nullptr) {
      to_unmap.push_back(&block);
    } else if (!block.is_split()) {
      release_segment(&block);
    }
  }
  for (Block* block : to_unmap) {
    unmap_block(block);
    if (!block->mapped && !block->is_split()) {
      pool.unmapped.erase(pool.unmapped.iterator_to(*block));
      delete_block(block);
    }
  }
}

void CachingAllocator::release_segment(Block* block) {
  Pool& pool = *block->pool;
  ++stats_.num_device_free;
  trace(Action::segment_free, block->address, block->size, *block);
  addresses_->remove_segment(block->address, block->size);
  stats_.segment.decrease(pool.small, 1);
  stats_.reserved_bytes.decrease(pool.small, block->size);
  if (block->size >= options_.max_split_size) stats_.oversize_segments.decrease(1);
  pool.blocks.erase(pool.blocks.iterator_to(*block));
  delete_block(block);
}

void CachingAllocator::retire_pool(PoolId pool) {
  if (pool != 0) pools(pool).retired = true;
}

void CachingAllocator::set_memory_fraction(double fraction) {
  allowed_.reset();
  if (fraction < 1 && device_.total == Bytes(0)) throw fraction_without_card();
  if (fraction < 1) allowed_ = static_cast<std::int64_t>(fraction * static_cast<double>(device_.total.count()));
}

// ---- looking at it

Address CachingAllocator::address(BlockId id) const { return block_of(id).address; }
Bytes CachingAllocator::block_size(BlockId id) const { return Bytes(block_of(id).size); }

std::vector<SegmentRecord> CachingAllocator::segments() const {
  std::vector<const Block*> heads;
  for (const Block& block : blocks_) {
    if (block.live && block.mapped && (block.prev == nullptr || !block.prev->mapped)) heads.push_back(&block);
  }
  std::sort(heads.begin(), heads.end(), [](const Block* a, const Block* b) { return a->address < b->address; });
  std::vector<SegmentRecord> segments;
  segments.reserve(heads.size());
  for (const Block* head : heads) {
    SegmentRecord segment{.address = head->address,
                          .size = 0,
                          .stream = head->stream,
                          .pool = head->pool->id,
                          .small_pool = head->pool->small,
                          .expandable = head->expandable != nullptr,
                          .blocks = {}};
    for (const Block* block = head; block != nullptr && block->mapped; block = block->next) {
      const BlockState state = block->allocated        ? BlockState::active_allocated
                               : block->used_elsewhere ? BlockState::active_pending_free
                                                       : BlockState::inactive;
      segment.blocks.push_back({block->size, block->requested, state, block->context});
      segment.size += block->size;
    }
    segments.push_back(std::move(segment));
  }
  return segments;
}

// ---- a recorded state

std::vector<BlockId> CachingAllocator::restore(const std::vector<SegmentRecord>& segments) {
  std::vector<BlockId> handles;
  std::map<Pool*, std::map<Stream, Block*>> tails;  // the unmapped end of each reservation
  for (const SegmentRecord& segment : segments) {
    PoolPair& pair = pools(segment.pool);
    Pool& pool = segment.small_pool ? pair.small : pair.large;
    stats_.reserved_bytes.increase(pool.small, segment.size);
    if (segment.expandable) {
      Block*& tail = tails[&pool][segment.stream];
      tail = restore_range(segment, pool, tail);
      restore_blocks(segment, pool, tail->prev, tail, handles);
    } else {
      stats_.segment.increase(pool.small, 1);
      if (segment.size >= options_.max_split_size) stats_.oversize_segments.increase(1);
      restore_blocks(segment, pool, nullptr, nullptr, handles);
    }
  }
  // Only now is it known which free blocks have neighbours.
  for (const Block& block : blocks_) {
    if (!block.live || !block.mapped || !block.is_free() || block.expandable != nullptr || !block.is_split()) continue;
    stats_.inactive_split.increase(block.pool->small, 1);
    stats_.inactive_split_bytes.increase(block.pool->small, block.size);
  }
  return handles;
}

/// Cuts a mapped range out of the unmapped end of its reservation, which is made when `tail` is none or lies elsewhere.
/// Returns the end that is left; before it comes the hole, or the block, that the range's blocks follow.
CachingAllocator::Block* CachingAllocator::restore_range(const SegmentRecord& range, Pool& pool, Block* tail) {
  const Address end = range.address + static_cast<Address>(range.size);
  if (tail == nullptr || range.address < tail->address || end >= tail->end()) {
    const std::int64_t page = pool.small ? small_buffer : options_.large_segment_size;
    const std::int64_t size = std::max(reservation_size(page), rounded_up(range.size, page) + page);
    expandable_segments_.push_back({range.address, size, page});
    tail = new_block(&pool, range.stream, range.address, size);
    tail->expandable = &expandable_segments_.back();
    tail->mapped = false;
  } else {
    pool.unmapped.erase(pool.unmapped.iterator_to(*tail));
  }
  if (tail->address < range.address) {
    const auto size = static_cast<std::int64_t>(range.address - tail->address);
    Block* hole = new_block(&pool, range.stream, tail->address, size);
    hole->expandable = tail->expandable;
    hole->mapped = false;
    link(tail->prev, hole);
    link(hole, tail);
    pool.unmapped.insert(*hole);
  }
  tail->size = static_cast<std::int64_t>(tail->end() - end);
  tail->address = end;
  pool.unmapped.insert(*tail);
  return tail;
}

/// The segment's blocks, between two that are there already.
void CachingAllocator::restore_blocks(const SegmentRecord& segment, Pool& pool, Block* before, Block* after,
                                      std::vector<BlockId>& handles) {
  Address address = segment.address;
  for (const BlockRecord& record : segment.blocks) {
    Block* block = new_block(&pool, segment.stream, address, record.size);
    if (after != nullptr) block->expandable = after->expandable;
    link(before, block);
    restore_block(record, block, handles);
    address = block->end();
    before = block;
  }
  link(before, after);
}

void CachingAllocator::restore_block(const BlockRecord& record, Block* block, std::vector<BlockId>& handles) {
  if (record.state == BlockState::inactive) {
    insert_free(block);
    return;
  }
  const bool small = block->pool->small;
  block->requested = record.requested;
  block->context = record.context;
  stats_.active.increase(small, 1);
  stats_.active_bytes.increase(small, block->size);
  stats_.requested_bytes.increase(small, block->requested);
  if (record.state == BlockState::active_allocated) {
    block->allocated = true;
    stats_.allocation.increase(small, 1);
    stats_.allocated_bytes.increase(small, block->size);
    if (block->size >= options_.max_split_size) stats_.oversize_allocations.increase(1);
  } else {
    block->used_elsewhere = true;
    waiting_.push_back(block);
  }
  handles.push_back(BlockId{block->id});
}

// ---- records

CachingAllocator::PoolPair& CachingAllocator::pools(PoolId id) { return pools_.try_emplace(id, id).first->second; }

CachingAllocator::Block* CachingAllocator::new_block(Pool* pool, Stream stream, Address address, std::int64_t size) {
  Block* block = nullptr;
  if (spare_.empty()) {
    block = &blocks_.emplace_back();
    block->id = static_cast<std::uint32_t>(blocks_.size() - 1);
  } else {
    block = spare_.back();
    spare_.pop_back();
    const std::uint32_t id = block->id;
    *block = Block{};
    block->id = id;
  }
  block->pool = pool;
  block->stream = stream;
  block->address = address;
  block->size = size;
  block->live = true;
  return block;
}

void CachingAllocator::delete_block(Block* block) {
  block->live = false;
  spare_.push_back(block);
}

CachingAllocator::Block& CachingAllocator::block_of(BlockId id) {
  return const_cast<Block&>(std::as_const(*this).block_of(id));
}
const CachingAllocator::Block& CachingAllocator::block_of(BlockId id) const {
  return blocks_.at(static_cast<std::uint32_t>(id));
}

}  // namespace headroom
