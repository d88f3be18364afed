// Any text as PYTORCH_ALLOC_CONF, for the version that its length names: options that an allocator can run with, or one
// Error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "estimator/allocate/allocator.h"
#include "estimator/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const TorchVersion torch{2, size % 2 == 0 ? 11 : size % 4 == 1 ? 8 : 15};
  try {
    const auto allocator = make_allocator(parse_allocator_options(text, torch), {.total = Bytes(GiB)});
    const BlockId small = allocator->allocate(Bytes(1000));
    const BlockId large = allocator->allocate(Bytes(30 * MiB + 1));
    if (small != BlockId::out_of_memory) allocator->free(small);
    if (large != BlockId::out_of_memory) allocator->free(large);
    allocator->empty_cache();
  } catch (const Error&) {
  }
  return 0;
}
