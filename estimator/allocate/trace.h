// Trace: what an allocator did, event by event, as torch.cuda.memory._record_memory_history records it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headroom {

/// A CUDA stream by a small number; 0 is the default stream.
using Stream = std::uint32_t;
/// A memory pool: 0 is the default one, others are private (CUDA graphs, torch.cuda.MemPool).
using PoolId = std::uint32_t;
/// A device address, or an offset from any base that is a multiple of 2 MiB.
using Address = std::uint64_t;

/// Names and meaning are those of the `action` field in a PyTorch snapshot.
enum class Action : std::uint8_t {
  alloc,           ///< size = the bytes asked for
  free_requested,  ///< the last owner let go
  free_completed,  ///< the block went back to its pool (later than requested when another stream still used it)
  segment_alloc,   ///< cudaMalloc; size = the segment's
  segment_free,
  segment_map,  ///< expandable segments: pages mapped
  segment_unmap,
  oom,  ///< size = the rounded request, address = free device bytes
};

/// "segment_alloc" and so on.
std::string_view name_of(Action action);

struct TraceEntry {
  Action action = Action::alloc;
  Stream stream = 0;
  PoolId pool = 0;
  std::int32_t context = -1;  ///< the caller's number for where it happened (a stack of frames); -1 unknown
  Address address = 0;
  std::int64_t size = 0;
};

/// Filled by an allocator that was told to (`Allocator::set_trace`). The owner sets `context` before each call.
struct Trace {
  std::vector<TraceEntry> entries;
  std::int32_t context = -1;

  void add(Action action, Address address, std::int64_t size, Stream stream, PoolId pool) {
    entries.push_back({action, stream, pool, context, address, size});
  }
};

enum class BlockState : std::uint8_t {
  inactive,             ///< free, in the cache
  active_allocated,     ///< owned by a tensor
  active_pending_free,  ///< freed by its owner, another stream may still use it
};
std::string_view name_of(BlockState state);

struct BlockRecord {
  std::int64_t size = 0;
  std::int64_t requested = 0;  ///< means nothing when inactive
  BlockState state = BlockState::inactive;
  std::int32_t context = -1;  ///< of the allocation, as in TraceEntry
};

/// One cudaMalloc, or one contiguous mapped range of an expandable segment, with the blocks that tile it in address
/// order.
struct SegmentRecord {
  Address address = 0;
  std::int64_t size = 0;
  Stream stream = 0;
  PoolId pool = 0;
  bool small_pool = false;
  bool expandable = false;
  std::vector<BlockRecord> blocks;
};

}  // namespace headroom
