// Random programs under every setting: what must hold after each call.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <vector>

#include "estimator/allocate/allocator.h"

namespace headroom {
namespace {

struct Live {
  BlockId block;
  std::int64_t requested;
};

/// Segments apart, blocks tiling them, neighbours merged, and every counter the sum of its parts.
void check_invariants(const Allocator& allocator, const std::vector<Live>& live, bool expandable_on) {
  const MemoryStats& stats = allocator.stats();
  std::int64_t reserved = 0, allocated = 0, active = 0, requested = 0, inactive_split = 0, native_segments = 0;
  std::map<Address, BlockRecord> blocks;
  Address end = 0;
  for (const SegmentRecord& segment : allocator.segments()) {
    REQUIRE(segment.address >= end);
    end = segment.address + static_cast<Address>(segment.size);
    reserved += segment.size;
    native_segments += segment.expandable ? 0 : 1;
    Address at = segment.address;
    bool free_before = false;
    for (const BlockRecord& block : segment.blocks) {
      REQUIRE(block.size > 0);
      REQUIRE(block.size % 512 == 0);
      const bool is_free = block.state == BlockState::inactive;
      REQUIRE_FALSE((is_free && free_before));
      free_before = is_free;
      if (!is_free) {
        active += block.size;
        requested += block.requested;
        REQUIRE(block.size >= block.requested);
      } else if (!segment.expandable && segment.blocks.size() > 1) {
        inactive_split += block.size;
      }
      if (block.state == BlockState::active_allocated) allocated += block.size;
      blocks[at] = block;
      at += static_cast<Address>(block.size);
    }
    REQUIRE(at == end);
  }
  REQUIRE(stats.reserved_bytes.all.current == reserved);
  REQUIRE(stats.allocated_bytes.all.current == allocated);
  REQUIRE(stats.active_bytes.all.current == active);
  REQUIRE(stats.requested_bytes.all.current == requested);
  REQUIRE(stats.inactive_split_bytes.all.current == inactive_split);
  REQUIRE(stats.segment.all.current == native_segments);
  for (const PoolStat* stat : {&stats.reserved_bytes, &stats.allocated_bytes, &stats.active_bytes, &stats.allocation}) {
    REQUIRE(stat->small_pool.current + stat->large_pool.current == stat->all.current);
    REQUIRE(stat->all.peak >= stat->all.current);
    REQUIRE(stat->all.allocated - stat->all.freed == stat->all.current);
  }
  for (const Live& one : live) {
    const auto found = blocks.find(allocator.address(one.block));
    REQUIRE(found != blocks.end());
    REQUIRE(found->second.requested == one.requested);
    REQUIRE(Bytes(found->second.size) == allocator.block_size(one.block));
  }
  if (expandable_on) REQUIRE(native_segments == 0);
}

TEST_CASE("random programs keep the invariants") {
  for (const std::string conf :
       {"", "expandable_segments:True", "max_split_size_mb:24", "roundup_power2_divisions:8",
        "large_segment_size_mb:12", "garbage_collection_threshold:0.4,per_process_memory_fraction:0.5",
        "expandable_segments:True,max_split_size_mb:40", "per_process_memory_fraction:0.3",
        "max_split_size_mb:20,max_non_split_rounding_mb:64"}) {
    CAPTURE(conf);
    const auto allocator =
        make_allocator(parse_allocator_options(conf), {.total = Bytes(2 * GiB), .outside = Bytes(64 * MiB)});
    const bool expandable_on = conf.starts_with("expandable");
    std::mt19937_64 random(conf.size());
    std::vector<Live> live;
    std::vector<BlockId> waiting;
    for (int step = 0; step < 4000; ++step) {
      const std::uint64_t dice = random() % 100;
      if (dice < 52 || live.empty()) {
        const int bits = static_cast<int>(random() % 26) + 1;
        const auto bytes = static_cast<std::int64_t>(random() % (std::uint64_t{1} << bits)) + 1;
        const BlockId block =
            allocator->allocate(Bytes(bytes), static_cast<Stream>(random() % 2), random() % 20 == 0 ? 3 : 0);
        if (block != BlockId::out_of_memory) live.push_back({block, bytes});
      } else if (dice < 97) {
        const std::size_t i = random() % 2 == 0 ? live.size() - 1 : random() % live.size();
        if (random() % 10 == 0) {
          allocator->record_stream(live[i].block, 5);
          waiting.push_back(live[i].block);
        }
        allocator->free(live[i].block);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (dice == 97) {
        allocator->empty_cache();
        waiting.clear();
      } else if (!waiting.empty() && allocator->stats().num_sync_all_streams == 0) {
        allocator->complete(waiting.back());
        waiting.pop_back();
      } else {
        allocator->synchronize();
        waiting.clear();
      }
      if (step % 20 == 0) check_invariants(*allocator, live, expandable_on);
    }
    for (const Live& one : live) allocator->free(one.block);
    allocator->retire_pool(3);
    allocator->empty_cache();
    CHECK(allocator->reserved() == Bytes(0));
    CHECK(allocator->segments().empty());
    CHECK(allocator->stats().inactive_split.all.current == 0);
  }
}

TEST_CASE("cudaMallocAsync: blocks never overlap, and everything goes back") {
  const auto allocator = make_allocator(parse_allocator_options("backend:cudaMallocAsync"));
  std::mt19937_64 random(3);
  std::map<Address, std::pair<BlockId, std::int64_t>> live;
  std::int64_t requested = 0;
  for (int step = 0; step < 6000; ++step) {
    if (random() % 100 < 55 || live.empty()) {
      const auto bytes = static_cast<std::int64_t>(random() % (std::uint64_t{1} << (random() % 26 + 1))) + 1;
      const BlockId block = allocator->allocate(Bytes(bytes));
      const Address begin = allocator->address(block);
      const Address end = begin + static_cast<Address>(allocator->block_size(block).count());
      const auto next = live.lower_bound(begin);
      REQUIRE((next == live.end() || next->first >= end));
      if (next != live.begin()) {
        const auto& [address, before] = *std::prev(next);
        REQUIRE(address + static_cast<Address>(allocator->block_size(before.first).count()) <= begin);
      }
      live[begin] = {block, bytes};
      requested += bytes;
    } else {
      auto it = live.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(random() % live.size()));
      allocator->free(it->second.first);
      requested -= it->second.second;
      live.erase(it);
    }
    REQUIRE(allocator->allocated().count() == requested);
    REQUIRE(allocator->reserved().count() % (32 * MiB) == 0);
    REQUIRE(allocator->reserved().count() >= requested);
  }
  for (const auto& [address, one] : live) allocator->free(one.first);
  allocator->empty_cache();
  CHECK(allocator->reserved() == Bytes(0));
}

}  // namespace
}  // namespace headroom
