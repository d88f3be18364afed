#include "estimator/allocate/native.h"

#include <algorithm>

namespace headroom {

std::int64_t CachingAllocator::reservation_size(std::int64_t page) const {
  if (device_.address_space != Bytes(0)) return device_.address_space.rounded_up(page).count();
  const std::int64_t total = device_.total == Bytes(0) ? 1024 * GiB : device_.total.count();
  return Bytes(checked_add(total, total / 8)).rounded_up(page).count();
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
  const std::int64_t mapped = Bytes(size).rounded_up(block->expandable->page).count();
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
  const std::int64_t from =
      Bytes(static_cast<std::int64_t>(block->address - segment.begin)).rounded_up(segment.page).count();
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

}  // namespace headroom
