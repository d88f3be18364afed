// write_snapshot CONF FILE: a small program of three layers and four steps, as a snapshot. For memory_viewer.py.
#include <fstream>
#include <iostream>
#include <vector>

#include "estimator/allocate/allocator.h"
#include "estimator/allocate/snapshot_writer.h"

int main(int argc, char** argv) {
  using namespace headroom;
  if (argc != 3) return 2;
  History history{.alloc_conf = argv[1]};
  const AllocatorOptions options = parse_allocator_options(argv[1]);
  const auto allocator = make_allocator(options, {.total = Bytes(GiB)});
  Trace trace;
  allocator->set_trace(&trace);
  std::vector<std::string> categories;
  for (const char* category : {"weights", "activations", "gradients"}) {
    history.frames.push_back({"model.onnx", static_cast<std::int64_t>(categories.size()), category});
    history.stacks.push_back({static_cast<std::uint32_t>(categories.size())});
    categories.emplace_back(category);
  }
  const auto take = [&](std::int32_t context, std::int64_t bytes) {
    trace.context = context;
    return allocator->allocate(Bytes(bytes));
  };
  for (int layer = 0; layer < 3; ++layer) take(0, 9 * MiB + layer);
  for (int step = 0; step < 4; ++step) {
    std::vector<BlockId> blocks;
    for (int layer = 0; layer < 3; ++layer) blocks.push_back(take(1, (12 + 7 * step) * MiB + layer * 1000));
    for (int layer = 3; layer-- > 0;) {
      blocks.push_back(take(2, 9 * MiB + layer));
      allocator->free(blocks[static_cast<std::size_t>(layer)]);
    }
    for (std::size_t i = 3; i < blocks.size(); ++i) allocator->free(blocks[i]);
    if (step == 1) allocator->empty_cache();
  }
  allocator->allocate(Bytes(2 * GiB));  // refused
  history.entries = trace.entries;
  history.segments = allocator->segments();
  std::ofstream(argv[2], std::ios::binary) << snapshot_pickle(history, options, categories);
  std::cout << allocator->allocated().count() << " " << allocator->reserved().count() << "\n";
  return 0;
}
