// Allocator: a model of PyTorch's CUDA allocators, fed event by event, usable on its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/allocate/options.h"
#include "estimator/allocate/stats.h"
#include "estimator/allocate/trace.h"
#include "estimator/base/bytes.h"
#include "estimator/base/error.h"

namespace headroom {

/// Handle of one live allocation. Reused after the block was freed.
enum class BlockId : std::uint32_t {
  null = 0xffff'fffe,           ///< of zero bytes: PyTorch hands out a null pointer; may be freed, counts nowhere
  out_of_memory = 0xffff'ffff,  ///< refused: see Allocator::last_oom
};

/// The card below the allocator.
struct AllocatorDevice {
  Bytes total{};    ///< totalGlobalMem; 0: without limit
  Bytes outside{};  ///< what context, libraries and other processes hold of it
  int index = 0;    ///< "GPU 0" in texts
  /// That an expandable segment reserves; 0: as PyTorch, 9/8 of the total.
  Bytes address_space{};
};

/// One refused request, with what PyTorch would print.
struct OutOfMemory {
  Bytes requested{};    ///< asked for
  Bytes rounded{};      ///< the block's size
  Bytes segment{};      ///< "Tried to allocate": the segment that was asked of the driver
  Bytes device_free{};  ///< at that time, as the driver says
  std::string text;     ///< torch.OutOfMemoryError's message
};

/// Where new memory lies. The driver's choice decides ties between equal free blocks, nothing else.
class AddressModel {
 public:
  virtual ~AddressModel() = default;
  /// Address of a new cudaMalloc segment of `size` bytes.
  virtual Address place_segment(std::int64_t size) = 0;
  virtual void remove_segment(Address address, std::int64_t size) = 0;
  /// Address of a new reservation of address space for an expandable segment.
  virtual Address place_reservation(std::int64_t size) = 0;
  /// cuDNN's kernels are on the device from here on.
  virtual void cudnn_loaded() {}
};

/// Measured on driver 580 (H200: cudaMalloc by hand, and eight runs with their addresses): chunks of 32 MiB downwards;
/// a segment fills the rest of a chunk where it can, of the newest one, which is the lowest. The context's own space
/// above them is free for segments too once cuDNN's kernels have made the driver use it.
/// `below`: of a process that has made segments already, the lowest of their addresses; absent: a new process.
std::unique_ptr<AddressModel> driver_addresses(std::optional<Address> below = std::nullopt);

class Allocator {
 public:
  virtual ~Allocator() = default;

  /// torch.empty of `requested` bytes while `stream` is current. Never throws for lack of memory:
  /// BlockId::out_of_memory.
  virtual BlockId allocate(Bytes requested, Stream stream = 0, PoolId pool = 0) = 0;
  /// The owner lets go. The block is free at once, unless record_stream was called for it: then it stays active until
  /// `complete`, `synchronize` or a retry after a failed cudaMalloc.
  virtual void free(BlockId block) = 0;
  /// Tensor.record_stream: `stream` uses the block too.
  virtual void record_stream(BlockId block, Stream stream) = 0;
  /// The other streams are done with a block that was freed while they used it. Nothing for a block that is not
  /// waiting.
  virtual void complete(BlockId block) = 0;
  /// torch.cuda.synchronize() and the next poll: completes all that wait.
  virtual void synchronize() = 0;
  /// cuDNN's first convolution runs: what the driver then loads changes where new segments lie.
  virtual void cudnn_loaded() {}
  /// torch.cuda.empty_cache().
  virtual void empty_cache() = 0;
  /// The CUDA graphs or MemPool that used a private pool are gone: its memory may go back when the cache is emptied.
  virtual void retire_pool(PoolId pool) = 0;
  /// torch.cuda.set_per_process_memory_fraction; `fraction` in [0, 1]. Throws fraction_without_card below 1 when the
  /// device has no total.
  virtual void set_memory_fraction(double fraction) = 0;

  /// Puts recorded segments in place, for a history that starts in the middle: call it first. Returns the handles of
  /// their blocks that are not inactive, in the order given. Nothing for a backend without segments.
  virtual std::vector<BlockId> restore(const std::vector<SegmentRecord>&) { return {}; }

  /// The block's address and its size in the allocator (rounded; whole when it was not worth splitting).
  virtual Address address(BlockId block) const = 0;
  virtual Bytes block_size(BlockId block) const = 0;
  /// Segments and blocks in address order, as torch.cuda.memory_snapshot().
  virtual std::vector<SegmentRecord> segments() const = 0;

  const MemoryStats& stats() const { return stats_; }
  Bytes allocated() const { return Bytes(stats_.allocated_bytes.all.current); }
  Bytes reserved() const { return Bytes(stats_.reserved_bytes.all.current); }
  Bytes peak_allocated() const { return Bytes(stats_.allocated_bytes.all.peak); }
  Bytes peak_reserved() const { return Bytes(stats_.reserved_bytes.all.peak); }
  /// torch.cuda.reset_peak_memory_stats().
  void reset_peaks() { stats_.reset_peaks(); }

  /// The last refused request; the text is made on demand only.
  virtual OutOfMemory last_oom() const = 0;

  /// From now on events are appended to `trace` (not owned; null: no more).
  void set_trace(Trace* trace) { trace_ = trace; }

 protected:
  MemoryStats stats_;
  Trace* trace_ = nullptr;
};

/// What a memory fraction without a card is answered with.
Error fraction_without_card();

/// The allocator that `options.backend` names. `addresses` null: `driver_addresses()`.
std::unique_ptr<Allocator> make_allocator(const AllocatorOptions& options, const AllocatorDevice& device = {},
                                          std::unique_ptr<AddressModel> addresses = nullptr);

}  // namespace headroom
