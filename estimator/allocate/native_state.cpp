#include "estimator/allocate/native.h"

#include <algorithm>
#include <map>
#include <vector>

namespace headroom {

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
    const std::int64_t size = std::max(reservation_size(page), Bytes(range.size).rounded_up(page).count() + page);
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

}  // namespace headroom
