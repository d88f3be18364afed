#include "estimator/allocate/allocator.h"

#include "estimator/allocate/async.h"
#include "estimator/allocate/native.h"

namespace headroom {

Error fraction_without_card() {
  return usage_error("a memory fraction needs the card's size", "per_process_memory_fraction",
                     "name the card with --gpu, or its memory with --memory");
}

std::unique_ptr<Allocator> make_allocator(const AllocatorOptions& options, const AllocatorDevice& device,
                                          std::unique_ptr<AddressModel> addresses) {
  if (options.backend == AllocatorBackend::cuda_malloc_async) {
    return std::make_unique<AsyncAllocator>(options, device);
  }
  return std::make_unique<CachingAllocator>(options, device, addresses ? std::move(addresses) : driver_addresses());
}

}  // namespace headroom
