#include "estimator/allocate/native.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "estimator/base/error.h"

namespace headroom {

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
