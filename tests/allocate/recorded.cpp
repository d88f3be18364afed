// The allocator against recordings of a real one: every address, segment, block, peak and refusal.
#include <doctest/doctest.h>

#include <cmath>

#include "estimator/allocate/async.h"
#include "estimator/allocate/replay.h"
#include "tests/allocate/data.h"

namespace headroom {
namespace {

TEST_CASE("every recorded native history is replayed exactly") {
  for (const std::string& name : recorded_files()) {
    if (name.starts_with("async-")) continue;
    for (const History& history : parse_histories(recorded_bytes(name), name)) {
      CAPTURE(name);
      const ReplayScript script = make_script(history);
      const ReplayCheck check = check_replay(history, script).check;
      CHECK_MESSAGE(check.all_equal(), check.first_difference);
      CHECK(check.addresses > 0);
      CHECK(check.addresses_equal == check.addresses);
      CHECK(check.segment_events_equal == check.segment_events);
      CHECK(check.segments_equal == check.segments);
      CHECK(check.blocks_equal == check.blocks);
      CHECK(check.oom_events == check.oom_events_recorded);
      CHECK(script.diagnostics.empty());
    }
  }
}

TEST_CASE("cudaMallocAsync: allocated and refusals are exact, reserved is within its bound") {
  for (const std::string& name : recorded_files()) {
    if (!name.starts_with("async-")) continue;
    CAPTURE(name);
    const History history = parse_histories(recorded_bytes(name), name).at(0);
    const CheckedReplay replayed = check_replay(history, make_script(history));
    CHECK(replayed.result.stats.allocated_bytes.all.peak == history.peaks.allocated);
    CHECK(replayed.check.oom_events == replayed.check.oom_events_recorded);
    CHECK(replayed.result.oom_events == replayed.check.oom_events_recorded);
    const auto recorded = static_cast<double>(history.peaks.reserved.value());
    const auto reserved = static_cast<double>(replayed.result.stats.reserved_bytes.all.peak);
    CHECK(std::abs(reserved / recorded - 1) <= AsyncAllocator::reserved_bound);
  }
}

TEST_CASE("the text of a refusal is PyTorch's") {
  // What torch 2.11 printed for the first refusal of this history; free memory and other processes differ by moment.
  const History history = parse_histories(recorded_bytes("default-oom.json"), "default-oom.json").at(0);
  const ReplayResult result = check_replay(history, make_script(history)).result;
  REQUIRE(result.ooms.size() == 31);
  const std::string& text = result.ooms.at(0).oom.text;
  CHECK(text.starts_with(
      "CUDA out of memory. Tried to allocate 154.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which "
      "127.87 GiB is free. "));
  CHECK(text.find(
            "4.19 GiB allowed; Of the allocated memory 3.73 GiB is allocated by PyTorch, and 420.02 MiB is reserved "
            "by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
            "Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage") !=
        std::string::npos);
  CHECK(result.ooms.at(1).oom.text.find("Tried to allocate 114.00 MiB.") != std::string::npos);
}

}  // namespace
}  // namespace headroom
