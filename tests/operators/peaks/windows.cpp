#include <algorithm>

#include "estimator/allocate/allocator.h"
#include "tests/operators/peaks/figures.h"

namespace headroom::peaks {

std::vector<Window> windows(const shadow::Trace& trace, const std::vector<std::size_t>& emptied) {
  using Kind = shadow::TraceEvent::Kind;
  const auto allocator = make_allocator(AllocatorOptions{});
  std::vector<BlockId> blocks(trace.blocks.size());
  std::vector<Window> found;
  std::int64_t start = 0;
  for (const auto& e : trace.events) {
    const auto i = static_cast<std::size_t>(e.index);
    if (e.kind == Kind::alloc) {
      blocks[i] = allocator->allocate(trace.blocks[i].bytes);
    } else if (e.kind == Kind::free) {
      allocator->free(blocks[i]);
    } else if (e.kind == Kind::phase) {
      if (std::ranges::count(emptied, found.size()) != 0) allocator->empty_cache();
      allocator->reset_peaks();
      start = allocator->allocated().count();
      found.emplace_back();
    }
    if (!found.empty())
      found.back() = {allocator->peak_allocated().count() - start, allocator->allocated().count() - start};
  }
  return found;
}

}  // namespace headroom::peaks
