#include "estimator/allocate/native.h"

#include <algorithm>
#include <vector>

namespace headroom {

void CachingAllocator::empty_cache() { release_cached_blocks(); }

void CachingAllocator::collect_garbage() {
  const auto threshold =
      static_cast<std::int64_t>(options_.garbage_collection_threshold * static_cast<double>(*allowed_));
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

}  // namespace headroom
