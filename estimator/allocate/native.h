// CachingAllocator: PyTorch's backend "native", with and without expandable segments.
#pragma once

#include <boost/intrusive/set.hpp>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "estimator/allocate/allocator.h"
#include "estimator/allocate/oom_text.h"

namespace headroom {

/// Rules of c10/cuda/CUDACachingAllocator.cpp (2.11), in its order and with its names; checked against recorded
/// histories address by address (tests/allocate). Single-threaded; times of streams' events are told by `complete`.
class CachingAllocator final : public Allocator {
 public:
  CachingAllocator(const AllocatorOptions& options, const AllocatorDevice& device,
                   std::unique_ptr<AddressModel> addresses);
  ~CachingAllocator() override;

  BlockId allocate(Bytes requested, Stream stream, PoolId pool) override;
  void free(BlockId block) override;
  void record_stream(BlockId block, Stream stream) override;
  void complete(BlockId block) override;
  void synchronize() override;
  void cudnn_loaded() override { addresses_->cudnn_loaded(); }
  void empty_cache() override;
  void retire_pool(PoolId pool) override;
  void set_memory_fraction(double fraction) override;
  Address address(BlockId block) const override;
  Bytes block_size(BlockId block) const override;
  std::vector<SegmentRecord> segments() const override;
  std::vector<BlockId> restore(const std::vector<SegmentRecord>& segments) override;
  OutOfMemory last_oom() const override;

 private:
  struct ExpandableSegment {
    Address begin = 0;
    std::int64_t size = 0;
    std::int64_t page = 0;
  };
  struct Pool;

  struct Block : boost::intrusive::set_base_hook<boost::intrusive::optimize_size<true>> {
    Address address = 0;
    std::int64_t size = 0;
    std::int64_t requested = 0;
    Block* prev = nullptr;  // neighbours in the segment
    Block* next = nullptr;
    Pool* pool = nullptr;
    ExpandableSegment* expandable = nullptr;
    std::int64_t gc_base = 0;
    Stream stream = 0;
    std::uint32_t id = 0;
    std::int32_t context = -1;
    bool live = false;            // this record is in use
    bool allocated = false;       // owned by a tensor
    bool used_elsewhere = false;  // record_stream: another stream may still use it
    bool mapped = true;

    bool is_split() const { return prev != nullptr || next != nullptr; }
    bool is_free() const { return !allocated && !used_elsewhere; }
    Address end() const { return address + static_cast<Address>(size); }
  };

  struct SizeKey {
    Stream stream;
    std::int64_t size;
    Address address;
  };
  struct BySize {
    static SizeKey key(const Block& b) { return {b.stream, b.size, b.address}; }
    static SizeKey key(const SizeKey& k) { return k; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      const SizeKey x = key(a), y = key(b);
      if (x.stream != y.stream) return x.stream < y.stream;
      if (x.size != y.size) return x.size < y.size;
      return x.address < y.address;
    }
  };
  struct ByAddress {
    bool operator()(const Block& a, const Block& b) const {
      return a.stream != b.stream ? a.stream < b.stream : a.address < b.address;
    }
  };
  using FreeBlocks =
      boost::intrusive::set<Block, boost::intrusive::compare<BySize>, boost::intrusive::constant_time_size<false>>;
  using UnmappedBlocks =
      boost::intrusive::set<Block, boost::intrusive::compare<ByAddress>, boost::intrusive::constant_time_size<false>>;

  struct Pool {
    Pool(bool small_pool, PoolId pool_id) : small(small_pool), id(pool_id) {}
    FreeBlocks blocks;
    UnmappedBlocks unmapped;
    std::int64_t searches = 0;  // get_free_blocks_call_count
    bool small;
    PoolId id;
  };
  struct PoolPair {
    explicit PoolPair(PoolId id) : small(true, id), large(false, id) {}
    Pool small;
    Pool large;
    bool retired = false;
  };
  struct Request {
    std::int64_t size;          // rounded
    std::int64_t segment_size;  // what cudaMalloc would be asked for
    Stream stream;
    Pool* pool;
  };

  bool collects_garbage() const { return allowed_ && options_.garbage_collection_threshold > 0; }
  bool should_split(const Block& block, std::int64_t size) const;
  bool device_has(std::int64_t bytes) const;

  Block* find_free_block(const Request& request);
  Block* new_segment(const Request& request, bool retry);
  Block* new_expandable_block(const Request& request);
  Block* find_expandable_block(const Request& request);
  bool map_block(Block* block, std::int64_t size);
  BlockId hand_out(const Request& request, Block* block, std::int64_t requested);
  BlockId refuse(const Request& request, std::int64_t requested);

  void free_block(Block* block);
  std::int64_t try_merge(Block* into, Block* from);
  void insert_free(Block* block);
  /// Makes the two neighbours; either may be null, the end of a segment.
  static void link(Block* before, Block* after);

  void collect_garbage();
  bool release_available_cached_blocks(const Request& request);
  void release_cached_blocks();
  void release_blocks(Pool& pool);
  void release_segment(Block* block);
  void unmap_block(Block* block);

  Block* restore_range(const SegmentRecord& range, Pool& pool, Block* tail);
  void restore_blocks(const SegmentRecord& segment, Pool& pool, Block* before, Block* after,
                      std::vector<BlockId>& handles);
  void restore_block(const BlockRecord& record, Block* block, std::vector<BlockId>& handles);

  PoolPair& pools(PoolId id);
  std::int64_t reservation_size(std::int64_t page) const;
  Block* new_block(Pool* pool, Stream stream, Address address, std::int64_t size);
  void delete_block(Block* block);
  Block& block_of(BlockId id);
  const Block& block_of(BlockId id) const;
  void trace(Action action, Address address, std::int64_t size, const Block& block) {
    if (trace_ != nullptr) trace_->add(action, address, size, block.stream, block.pool->id);
  }

  AllocatorOptions options_;
  AllocatorDevice device_;
  std::unique_ptr<AddressModel> addresses_;
  std::optional<std::int64_t> allowed_;  // bytes, when a memory fraction below 1 is set
  std::map<PoolId, PoolPair> pools_;     // 0 first; nodes do not move
  PoolPair* default_pools_;
  std::deque<Block> blocks_;
  std::vector<Block*> spare_;
  std::deque<ExpandableSegment> expandable_segments_;
  std::vector<Block*> waiting_;  // freed by their owner, used on another stream
  OomState oom_;
};

}  // namespace headroom
