// The native allocator's rules one by one, with the arithmetic. Sizes in bytes; a fresh allocator, one stream.
#include <doctest/doctest.h>

#include <vector>

#include "estimator/allocate/allocator.h"
#include "estimator/allocate/native.h"
#include "estimator/base/error.h"

namespace headroom {
namespace {

struct Run {
  explicit Run(const char* conf = "", Bytes total = Bytes(0))
      : allocator(make_allocator(parse_allocator_options(conf), {.total = total})) {}

  BlockId take(std::int64_t n, Stream stream = 0) { return allocator->allocate(Bytes(n), stream); }
  std::vector<BlockId> take(std::int64_t n, int times) {
    std::vector<BlockId> blocks;
    for (int i = 0; i < times; ++i) blocks.push_back(take(n));
    return blocks;
  }
  void free(const std::vector<BlockId>& blocks) {
    for (const BlockId block : blocks) allocator->free(block);
  }
  std::int64_t allocated() const { return allocator->allocated().count(); }
  std::int64_t reserved() const { return allocator->reserved().count(); }

  std::unique_ptr<Allocator> allocator;
};

TEST_CASE("what one request costs") {
  struct Row {
    std::int64_t bytes, native_allocated, native_reserved, expandable_reserved;
  };
  for (const Row row : {
           Row{1, 512, 2 * MiB, 2 * MiB}, Row{MiB, MiB, 2 * MiB, 2 * MiB},
           Row{MiB + 1, MiB + 512, 20 * MiB, 20 * MiB},              // large pool
           Row{10 * MiB, 10 * MiB, 10 * MiB, 20 * MiB},              // a segment of its own
           Row{11 * MiB, 12 * MiB, 12 * MiB, 20 * MiB},              // 1 MiB over: not worth splitting
           Row{11 * MiB - 512, 11 * MiB - 512, 12 * MiB, 20 * MiB},  // more than 1 MiB over: split
           Row{19 * MiB + 512, 20 * MiB, 20 * MiB, 20 * MiB},
           Row{8'519'680, 8'519'680, 20 * MiB, 20 * MiB},  // cuBLAS workspace
       }) {
    CAPTURE(row.bytes);
    Run native;
    native.take(row.bytes);
    CHECK(native.allocated() == row.native_allocated);
    CHECK(native.reserved() == row.native_reserved);
    Run expandable("expandable_segments:True");
    expandable.take(row.bytes);
    CHECK(expandable.allocated() == Bytes(row.bytes).rounded_up(512).count());
    CHECK(expandable.reserved() == row.expandable_reserved);
  }
}

TEST_CASE("zero bytes are a null pointer") {
  Run run;
  const BlockId block = run.take(0);
  CHECK(block == BlockId::null);
  run.allocator->free(block);
  CHECK(run.reserved() == 0);
}

TEST_CASE("an exabyte is refused with its own words") {
  Run run;
  CHECK(run.take(1LL << 60) == BlockId::out_of_memory);
  CHECK(run.allocator->last_oom().text == "CUDA out of memory. Tried to allocate more than 1EB memory.");
}

TEST_CASE("expandable segments grow by pages and use their free tail") {
  Run native;
  native.free(native.take(16 * MiB, 8));
  CHECK(native.reserved() == 128 * MiB);
  native.take(32 * MiB, 4);  // no freed 16 MiB block serves
  CHECK(native.reserved() == 256 * MiB);

  Run expandable("expandable_segments:True");
  expandable.free(expandable.take(16 * MiB, 8));
  CHECK(expandable.reserved() == 140 * MiB);  // 7 pages of 20 MiB
  expandable.take(32 * MiB, 4);
  CHECK(expandable.reserved() == 140 * MiB);
  CHECK(expandable.allocator->stats().segment.all.current == 0);
}

TEST_CASE("pools are apart, and so are streams") {
  Run run;
  run.allocator->free(run.take(2 * MiB));
  run.take(MiB / 2);  // the 20 MiB segment is not for small requests
  CHECK(run.reserved() == 22 * MiB);
  run.take(2 * MiB, Stream{1});
  CHECK(run.reserved() == 42 * MiB);
}

TEST_CASE("best fit: the smallest block that serves, the lowest of equals") {
  Run run;
  const auto a = run.take(30 * MiB);
  const auto b = run.take(26 * MiB);
  const auto c = run.take(26 * MiB);
  const Address lower = std::min(run.allocator->address(b), run.allocator->address(c));
  run.free({a, b, c});
  CHECK(run.allocator->address(run.take(25 * MiB)) == lower);
  CHECK(run.allocated() == 26 * MiB);  // 1 MiB left over stays with it
}

TEST_CASE("neighbours merge, across segments they do not") {
  Run run;
  const auto blocks = run.take(4 * MiB, 10);  // two segments of 20 MiB
  CHECK(run.reserved() == 40 * MiB);
  run.free(blocks);
  CHECK(run.allocator->stats().inactive_split.all.current == 0);
  run.take(20 * MiB, 2);
  CHECK(run.reserved() == 40 * MiB);
}

TEST_CASE("max_split_size: large blocks are neither split nor given to small requests") {
  Run run("max_split_size_mb:32");
  run.allocator->free(run.take(64 * MiB));
  run.take(16 * MiB);  // may not take the 64 MiB block
  CHECK(run.reserved() == 80 * MiB);
  run.take(50 * MiB);  // may, whole: 64 < 50 + 20
  CHECK(run.reserved() == 80 * MiB);
  CHECK(run.allocated() == 80 * MiB);
  CHECK(run.allocator->stats().oversize_allocations.current == 1);
  Run strict("max_split_size_mb:32");
  strict.allocator->free(strict.take(64 * MiB));
  strict.take(44 * MiB);  // 64 is not below 44 + 20
  CHECK(strict.reserved() == 108 * MiB);
}

TEST_CASE("roundup_power2_divisions") {
  Run run("roundup_power2_divisions:4");
  run.take(5 * MiB);  // between 4 and 8 in steps of 1
  CHECK(run.allocated() == 5 * MiB);
  run.take(5 * MiB + 1);
  CHECK(run.allocated() == 11 * MiB);
  run.take(1200);  // not above 512·4: multiples of 512
  CHECK(run.allocated() == 11 * MiB + 1536);
  const AllocatorOptions list = parse_allocator_options("roundup_power2_divisions:[1:2,4:8,>:1]");
  CHECK(list.round_size(MiB + 1) == MiB + MiB / 2);      // 1 MiB: halves
  CHECK(list.round_size(2 * MiB + 1) == 2 * MiB + 512);  // 2 MiB: not named, off
  CHECK(list.round_size(4 * MiB + 1) == 4 * MiB + MiB / 2);
  CHECK(list.round_size(8 * MiB + 1) == 8 * MiB + 512);
}

TEST_CASE("a block that another stream uses stays active until told") {
  Run run;
  const BlockId block = run.take(4 * MiB);
  run.allocator->record_stream(block, 0);  // its own stream: nothing
  run.allocator->record_stream(block, 1);
  run.allocator->free(block);
  const MemoryStats& stats = run.allocator->stats();
  CHECK(stats.allocated_bytes.all.current == 0);
  CHECK(stats.active_bytes.all.current == 4 * MiB);
  CHECK(stats.requested_bytes.all.current == 4 * MiB);
  const BlockId other = run.take(4 * MiB);
  CHECK(run.allocator->address(other) != run.allocator->address(block));
  run.allocator->complete(block);
  CHECK(stats.active_bytes.all.current == 4 * MiB);
  run.allocator->complete(block);  // again: nothing
  CHECK(stats.active_bytes.all.current == 4 * MiB);
}

TEST_CASE("a full card: cached segments go back, then the request is refused") {
  Run run("", Bytes(100 * MiB));
  run.allocator->free(run.take(60 * MiB));
  const BlockId large = run.take(80 * MiB);
  CHECK(large != BlockId::out_of_memory);
  CHECK(run.reserved() == 80 * MiB);
  CHECK(run.allocator->stats().num_alloc_retries == 1);
  CHECK(run.take(30 * MiB) == BlockId::out_of_memory);
  CHECK(run.allocator->stats().num_ooms == 1);
  CHECK(run.allocator->last_oom().segment == Bytes(30 * MiB));
  CHECK(run.allocator->last_oom().device_free == Bytes(20 * MiB));
  run.allocator->free(large);
  CHECK(run.take(30 * MiB) != BlockId::out_of_memory);
}

TEST_CASE("the memory fraction counts whole segments") {
  Run run("per_process_memory_fraction:0.5", Bytes(64 * MiB));
  CHECK(run.take(2 * MiB) != BlockId::out_of_memory);   // 20 of 32 MiB
  CHECK(run.take(16 * MiB) != BlockId::out_of_memory);  // from the rest of it
  CHECK(run.take(14 * MiB) == BlockId::out_of_memory);  // 34 of 32
  CHECK(run.allocator->last_oom().text.find("32.00 MiB allowed; ") != std::string::npos);
  CHECK_THROWS_AS(Run("per_process_memory_fraction:0.5"), Error);  // of what?
}

TEST_CASE("throw_on_cudamalloc_oom refuses without trying to free") {
  const AllocatorOptions options =
      parse_allocator_options("per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True", {2, 12});
  const auto allocator = make_allocator(options, {.total = Bytes(64 * MiB)});
  allocator->free(allocator->allocate(Bytes(20 * MiB)));
  CHECK(allocator->allocate(Bytes(22 * MiB)) == BlockId::out_of_memory);
  CHECK(allocator->reserved() == Bytes(20 * MiB));
  CHECK(allocator->stats().num_oom_rejections == 1);
  CHECK(allocator->stats().num_alloc_retries == 0);
}

TEST_CASE("garbage collection frees what has waited longest, above its threshold only") {
  // Allowed 128 MiB, threshold 64 MiB.
  Run run("garbage_collection_threshold:0.5,per_process_memory_fraction:0.5", Bytes(256 * MiB));
  const BlockId old = run.take(40 * MiB);
  const BlockId young = run.take(12 * MiB);
  run.allocator->free(old);
  run.take(1 * MiB, 3);  // the small pool ages on its own
  run.take(2 * MiB, 2);  // two searches of the large pool, served by `old`'s block… which is split now
  CHECK(run.reserved() == 56 * MiB);
  run.allocator->free(young);
  run.take(41 * MiB);  // 56 MiB reserved: below the threshold, nothing is freed
  CHECK(run.allocator->stats().num_device_free == 0);
  run.take(43 * MiB);  // 98 MiB reserved: the one whole block goes
  CHECK(run.allocator->stats().num_device_free == 1);
}

TEST_CASE("empty_cache gives back whole segments, and whole pages of expandable ones") {
  Run native;
  const auto kept = native.take(4 * MiB);
  native.allocator->free(native.take(24 * MiB));
  native.allocator->empty_cache();
  CHECK(native.reserved() == 20 * MiB);
  CHECK(native.allocator->stats().inactive_split_bytes.all.current == 16 * MiB);
  native.free({kept});
  native.allocator->empty_cache();
  CHECK(native.reserved() == 0);

  Run expandable("expandable_segments:True");
  const auto first = expandable.take(30 * MiB);
  const auto second = expandable.take(30 * MiB);
  expandable.take(5 * MiB);  // 65 of 80 MiB
  expandable.free({first, second});
  expandable.allocator->empty_cache();  // [0, 60) is free: three pages; the last has 5 of 20 in use
  CHECK(expandable.reserved() == 20 * MiB);
  const auto segments = expandable.allocator->segments();
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].blocks.size() == 2);
  const auto again = expandable.take(16 * MiB);  // the tail has 15 only: a page of the hole, the lowest
  CHECK(expandable.allocator->address(again) == segments[0].address - 60 * MiB);
  CHECK(expandable.reserved() == 40 * MiB);
}

TEST_CASE("private pools keep their memory until they are retired") {
  Run run;
  run.allocator->free(run.allocator->allocate(Bytes(24 * MiB), 0, 7));
  run.allocator->empty_cache();
  CHECK(run.reserved() == 24 * MiB);
  run.take(24 * MiB);  // not from the private pool
  CHECK(run.reserved() == 48 * MiB);
  run.allocator->retire_pool(7);
  run.allocator->empty_cache();
  CHECK(run.reserved() == 24 * MiB);
}

TEST_CASE("peaks are running maxima and can be reset") {
  Run run;
  run.free(run.take(4 * MiB, 3));
  CHECK(run.allocator->peak_allocated() == Bytes(12 * MiB));
  run.allocator->reset_peaks();
  CHECK(run.allocator->peak_allocated() == Bytes(0));
  CHECK(run.allocator->peak_reserved() == Bytes(20 * MiB));
}

TEST_CASE("the trace names what happened, in PyTorch's order") {
  Run run;
  Trace trace;
  run.allocator->set_trace(&trace);
  trace.context = 5;
  run.allocator->free(run.take(3 * MiB));
  run.allocator->empty_cache();
  std::vector<Action> actions;
  for (const TraceEntry& entry : trace.entries) actions.push_back(entry.action);
  CHECK(actions == std::vector{Action::segment_alloc, Action::alloc, Action::free_requested, Action::free_completed,
                               Action::segment_free});
  CHECK(trace.entries[1].size == 3 * MiB);
  CHECK(trace.entries[1].context == 5);
  CHECK(trace.entries[0].size == 20 * MiB);
}

TEST_CASE("new segments lie where the driver puts them: chunks of 32 MiB downwards, small ones into their rests") {
  const auto addresses = driver_addresses();
  const Address first = addresses->place_segment(40 * MiB);   // two chunks
  const Address second = addresses->place_segment(20 * MiB);  // into the 24 MiB that are left
  const Address third = addresses->place_segment(32 * MiB);
  const Address fourth = addresses->place_segment(2 * MiB);
  CHECK(second == first + 40 * MiB);
  CHECK(third == first - 32 * MiB);
  CHECK(fourth == second + 20 * MiB);
  const Address fifth = addresses->place_segment(28 * MiB);
  CHECK(addresses->place_segment(2 * MiB) == fifth + 28 * MiB);  // the newest chunk's rest, not the tightest
  addresses->remove_segment(third, 32 * MiB);
  CHECK(addresses->place_segment(32 * MiB) == third);
}

TEST_CASE("segments of a process under way lie below those that it has made") {
  constexpr Address made = Address{1} << 40;
  const auto addresses = driver_addresses(made);
  const Address first = addresses->place_segment(2 * MiB);
  CHECK(first == made - 32 * MiB);
  addresses->cudnn_loaded();
  CHECK(addresses->place_segment(20 * MiB) == first + 2 * MiB);
  CHECK(addresses->place_segment(20 * MiB) == first - 32 * MiB);
}

TEST_CASE("the context's space is there for segments once cuDNN's kernels are loaded") {
  const auto addresses = driver_addresses();
  const Address small = addresses->place_segment(2 * MiB);
  const Address large = addresses->place_segment(20 * MiB);
  const Address below = addresses->place_segment(20 * MiB);
  CHECK(large > small);
  CHECK(below < small);
  addresses->cudnn_loaded();
  const Address inside = addresses->place_segment(44 * MiB);
  CHECK(inside > below);
  CHECK(inside < small);
  CHECK(addresses->place_segment(100 * MiB) == inside + 44 * MiB);
  CHECK(addresses->place_segment(400 * MiB) < below);
  CHECK(addresses->place_segment(12 * MiB) == below - 16 * MiB);  // of the newest chunk, which is the lowest
}

}  // namespace
}  // namespace headroom
