// Scripts taken from recordings, other settings on the same history, leaks, and the snapshot writer's round trip.
#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/allocate/replay.h"
#include "estimator/allocate/snapshot_writer.h"
#include "estimator/base/error.h"
#include "tests/allocate/data.h"

namespace headroom {
namespace {

History recorded(const std::string& name) { return parse_histories(recorded_bytes(name), name).at(0); }

std::int64_t count(const ReplayScript& script, ReplayScript::Kind kind) {
  return std::count_if(script.steps.begin(), script.steps.end(), [&](const auto& step) { return step.kind == kind; });
}

History events(const std::string& text, const std::string& rest = "") {
  return parse_histories("{\"events\": [" + text + "]" + rest + "}", "test.json").at(0);
}

TEST_CASE("frames of a JSON history") {
  const History history = events(R"(["alloc", 512, 0, 0, "sparse.py:189:forward < model.py:42:<lambda>"],
                                    ["alloc", 512, 512, 0, "odd"], ["alloc", 512, 1024, 0, ""],
                                    ["alloc", 512, 1536, 0, "sparse.py:189:forward < model.py:42:<lambda>"])");
  CHECK(history.call_site(history.entries.at(0).context) == "sparse.py:189 forward");
  const auto& stack = history.stacks.at(static_cast<std::size_t>(history.entries.at(3).context));
  CHECK(history.entries.at(0).context == history.entries.at(3).context);
  CHECK(history.frames.at(stack.at(1)).line == 42);
  CHECK(history.frames.at(stack.at(1)).name == "<lambda>");
  CHECK(history.call_site(history.entries.at(1).context).empty());
  CHECK(history.entries.at(2).context == -1);
}

TEST_CASE("empty_cache is told from segments that a failing allocation freed") {
  CHECK(count(make_script(recorded("default-empty.json")), ReplayScript::Kind::empty_cache) > 0);
  CHECK(count(make_script(recorded("default-oom.json")), ReplayScript::Kind::empty_cache) == 0);
  CHECK(count(make_script(recorded("gc-oom.json")), ReplayScript::Kind::empty_cache) == 0);
}

TEST_CASE("a history that starts in the middle starts from the segments that were there") {
  for (const char* name : {"snap-ring.pickle", "snap-late.pickle", "snapexp-ring.pickle", "snapexp-late.pickle"}) {
    CAPTURE(name);
    const ReplayScript script = make_script(recorded(name));
    CHECK(!script.initial.empty());
    CHECK(script.diagnostics.empty());
    CHECK(replay(script, recorded_config(script)).oom_events == 0);
  }
  CHECK(make_script(recorded("snap-plain.pickle")).initial.empty());
}

TEST_CASE("other settings on the same history") {
  const ReplayScript script = make_script(recorded("default-lengths.json"));
  const ReplayResult native = replay(script, other_config(script, parse_allocator_options("")));
  const ReplayResult expandable =
      replay(script, other_config(script, parse_allocator_options("expandable_segments:True")));
  const ReplayResult async = replay(script, other_config(script, parse_allocator_options("backend:cudaMallocAsync")));
  CHECK(native.stats.reserved_bytes.all.peak == 3'267'362'816);  // as recorded
  CHECK(native.fragmentation() > 0.5);
  CHECK(expandable.stats.reserved_bytes.all.peak < native.stats.reserved_bytes.all.peak / 3 * 2);
  CHECK(expandable.fragmentation() < 0.1);
  CHECK(async.stats.allocated_bytes.all.peak == native.stats.requested_bytes.all.peak);
  CHECK(async.diagnostics.at(0).code == "async-reserved");
  CHECK(native.timeline.size() <= 513);
  CHECK(native.at_peak_reserved.reserved == native.stats.reserved_bytes.all.peak);
}

TEST_CASE("a limit that the file does not name is taken from what happened") {
  for (const char* name :
       {"gc-oom.json", "gcsplit-lengths.json", "gc-random.json", "expandable-oom.json", "split64-oom.json"}) {
    CAPTURE(name);
    History history = recorded(name);
    history.memory_fraction.reset();
    history.device_total.reset();
    const ReplayScript script = make_script(history);
    const ReplayCheck check = check_replay(history, script).check;
    CHECK_MESSAGE(check.all_equal(), check.first_difference);
    CHECK(script.diagnostics.size() == (std::string(name).starts_with("gc") ? 1 : 0));
  }
}

TEST_CASE("segments that other settings would not have made are not taken over") {
  const ReplayScript script = make_script(recorded("snapexp-late.pickle"));
  const ReplayResult native = replay(script, other_config(script, parse_allocator_options("")));
  REQUIRE(native.diagnostics.size() == 1);
  CHECK(native.diagnostics[0].code == "initial-segments-replaced");
  CHECK(std::none_of(native.segments.begin(), native.segments.end(), [](const auto& s) { return s.expandable; }));
  const ReplayResult same = replay(script, recorded_config(script));
  CHECK(same.diagnostics.empty());
  CHECK(native.stats.requested_bytes.all.peak == same.stats.requested_bytes.all.peak);
  const ReplayResult async = replay(script, other_config(script, parse_allocator_options("backend:cudaMallocAsync")));
  CHECK(async.stats.allocated_bytes.all.peak == same.stats.requested_bytes.all.peak);
}

TEST_CASE("would it have fitted?") {
  const ReplayScript script = make_script(recorded("default-lengths.json"));
  const AllocatorOptions options = parse_allocator_options("");
  CHECK(replay(script, other_config(script, options, Bytes(2 * GiB))).oom_events ==
        0);  // cached segments go back in time
  const ReplayResult small = replay(script, other_config(script, options, Bytes(GiB)));
  CHECK(small.oom_events > 0);
  CHECK(!small.ooms.empty());
  CHECK(!small.ooms.at(0).recorded);
  CHECK(small.ooms.at(0).oom.text.find("total capacity of 1024.00 MiB") != std::string::npos);
  // And what was refused under a limit is granted without it.
  const ReplayScript refused = make_script(recorded("default-oom.json"));
  const ReplayResult large = replay(refused, other_config(refused, options, Bytes(80 * GiB)));
  CHECK(large.oom_events == 0);
  CHECK(large.avoided_ooms == 31);
}

TEST_CASE("a leak is where survivors keep coming") {
  const History history = recorded("snap-leak.pickle");
  const std::vector<LeakSite> leaks = find_leaks(history, make_script(history));
  REQUIRE(!leaks.empty());
  // keep.append(net(x).mean()): the kept losses hold their graphs.
  CHECK(leaks.at(0).call_site.starts_with("/home/user/train.py:"));
  CHECK(leaks.at(0).count >= 8);
  CHECK(leaks.at(0).bytes > 50 * MiB);
  const History clean = recorded("snap-plain.pickle");
  CHECK(find_leaks(clean, make_script(clean)).empty());
}

TEST_CASE("a leak without frames is named by its size") {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    const std::string at = std::to_string(i * 4096);
    text += "[\"alloc\", 777, " + at + ", 0],";
    text +=
        "[\"alloc\", 100, 1048576, 0], [\"free_requested\", 100, 1048576, 0], [\"free_completed\", 100, 1048576, 0],";
  }
  text.pop_back();
  const History history = events(text);
  const std::vector<LeakSite> leaks = find_leaks(history, make_script(history));
  REQUIRE(leaks.size() == 1);
  CHECK(leaks[0].call_site.empty());
  CHECK(leaks[0].bytes_each == 777);
  CHECK(leaks[0].count == 20);
}

TEST_CASE("recordings with gaps are replayed as far as they make sense") {
  // A free of what was never allocated; an allocation where another one lives.
  const ReplayScript script = make_script(
      events(R"(["free_requested", 5, 512, 0], ["alloc", 9, 0, 0], ["alloc", 9, 0, 0], ["free_completed", 9, 0, 0])"));
  CHECK(script.blocks == 2);
  REQUIRE(script.diagnostics.size() == 1);
  CHECK(script.diagnostics[0].code == "history-inconsistent");
  CHECK(replay(script, recorded_config(script)).stats.allocated_bytes.all.current == 0);
  CHECK_THROWS_AS(make_script(events("")), Error);
  CHECK_THROWS_AS(make_script(events(R"(["alloc", 9, 0, 0])", R"(, "conf": "foo:1")")), Error);
}

TEST_CASE("free_requested alone frees when no completion was recorded") {
  const ReplayScript script = make_script(events(R"(["alloc", 9, 0, 0], ["free_requested", 9, 0, 0])"));
  CHECK(replay(script, recorded_config(script)).stats.active_bytes.all.current == 0);
}

TEST_CASE("a snapshot that we write, read again and replayed, gives the same figures") {
  for (const char* name : {"default-oom.json", "expandable-streams.json", "seg12split-streams.json"}) {
    CAPTURE(name);
    const History source = recorded(name);
    const ReplayScript script = make_script(source);
    History ours{.alloc_conf = source.alloc_conf};
    const ReplayConfig config = recorded_config(script);
    const auto allocator = make_allocator(config.options, config.device);
    Trace trace;
    allocator->set_trace(&trace);
    std::vector<BlockId> blocks(script.blocks, BlockId::null);
    for (const ReplayScript::Step& step : script.steps) {
      if (step.kind == ReplayScript::Kind::allocate) {
        trace.context = static_cast<std::int32_t>(step.block % 3);
        const BlockId block = allocator->allocate(Bytes(step.bytes), step.stream);
        blocks[step.block] = block == BlockId::out_of_memory ? BlockId::null : block;
      } else if (step.kind == ReplayScript::Kind::free || step.kind == ReplayScript::Kind::free_later) {
        allocator->free(blocks[step.block]);
      }
    }
    for (std::uint32_t i = 0; i < 3; ++i) {
      ours.frames.push_back({"model.onnx", i, "layers." + std::to_string(i)});
      ours.stacks.push_back({i, 0});
    }
    ours.entries = trace.entries;
    ours.segments = allocator->segments();

    const std::string bytes = snapshot_pickle(ours, config.options, {"weights", "activations", ""});
    CHECK(bytes == snapshot_pickle(ours, config.options, {"weights", "activations", ""}));
    const History again = parse_histories(bytes, "ours.pickle").at(0);
    CHECK(again.alloc_conf == ours.alloc_conf);
    CHECK(again.entries.size() == ours.entries.size());
    CHECK(again.frames.at(again.stacks.at(static_cast<std::size_t>(again.entries.at(1).context)).at(0))
              .name.starts_with("layers."));
    const CheckedReplay replayed = check_replay(again, make_script(again));
    CHECK_MESSAGE(replayed.check.all_equal(), replayed.check.first_difference);
    CHECK(replayed.result.stats.reserved_bytes == allocator->stats().reserved_bytes);
    CHECK(replayed.result.stats.allocated_bytes.all == allocator->stats().allocated_bytes.all);
  }
}

}  // namespace
}  // namespace headroom
