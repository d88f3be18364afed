// AllocatorOptions: PYTORCH_ALLOC_CONF, parsed as PyTorch parses it.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "estimator/base/bytes.h"

namespace headroom {

/// torch.__version__'s first two numbers.
struct TorchVersion {
  int major = 2;
  int minor = 11;
  friend auto operator<=>(const TorchVersion&, const TorchVersion&) = default;
};

/// "2.11", "2.11.0+cu130". Throws Error (usage).
TorchVersion parse_torch_version(std::string_view text);

/// Sizes of c10/core/AllocatorConfig.h.
inline constexpr std::int64_t min_block_size = 512;        ///< and the unit of rounding
inline constexpr std::int64_t small_size = 1 * MiB;        ///< largest block of the small pool
inline constexpr std::int64_t small_buffer = 2 * MiB;      ///< segment of the small pool
inline constexpr std::int64_t min_large_alloc = 10 * MiB;  ///< from here on a request gets a segment of its own
inline constexpr std::int64_t round_large = 2 * MiB;       ///< whose size is a multiple of this
inline constexpr std::int64_t one_exabyte = 1LL << 60;     ///< PyTorch refuses requests from here on

enum class AllocatorBackend : std::uint8_t { native, cuda_malloc_async };

/// Options that decide where bytes go. Keys that PyTorch takes but that change no device memory (pinned_*,
/// release_lock_on_cudamalloc) are checked by the parser and not kept.
struct AllocatorOptions {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  AllocatorBackend backend = AllocatorBackend::native;
  bool expandable_segments = false;
  std::int64_t max_split_size = unlimited;         ///< bytes
  std::int64_t max_non_split_rounding = 20 * MiB;  ///< bytes
  std::int64_t large_segment_size = 20 * MiB;      ///< bytes; segments for requests of 1 to 10 MiB
  double garbage_collection_threshold = 0;         ///< 0: off
  double per_process_memory_fraction = 1;          ///< of the device's total
  bool throw_on_cudamalloc_oom = false;
  /// By power of two of the request, entry 0 for everything below 2 MiB, 15 from 32 GiB on; 0 and 1: off.
  std::array<std::int64_t, 16> roundup_power2_divisions{};
  TorchVersion torch;

  /// Bytes of the block that a request of `bytes` (> 0) asks for: multiples of 512, or the roundup's steps.
  std::int64_t round_size(std::int64_t bytes) const;
  /// Bytes that cudaMalloc is asked for when a block of `size` (rounded) finds no room.
  std::int64_t segment_size(std::int64_t size) const;
};

/// Parses the value of PYTORCH_ALLOC_CONF for one PyTorch version. Throws Error (usage) where PyTorch refuses the text,
/// with PyTorch's words.
AllocatorOptions parse_allocator_options(std::string_view text, TorchVersion torch = {});

}  // namespace headroom
