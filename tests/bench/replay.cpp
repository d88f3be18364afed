// One million recorded events through each kind of allocator.
#include <benchmark/benchmark.h>

#include <random>
#include <utility>
#include <vector>

#include "estimator/allocate/replay.h"

namespace headroom {
namespace {

/// Allocations of 1 byte to 64 MiB, up to 2,000 alive, freed mostly last in, first out.
History million_events() {
  History history;
  std::mt19937_64 random(1);
  std::vector<std::pair<Address, std::int64_t>> live;
  Address next = Address{1} << 40;
  while (history.entries.size() < 1'000'000) {
    if (live.size() > 2000 || (!live.empty() && random() % 100 < 45)) {
      const std::size_t i = random() % 3 != 0 ? live.size() - 1 : random() % live.size();
      const auto [address, size] = live[i];
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      history.entries.push_back({.action = Action::free_requested, .address = address, .size = size});
      history.entries.push_back({.action = Action::free_completed, .address = address, .size = size});
    } else {
      const auto power = std::int64_t{1} << random() % 26;
      const auto size = power + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(power));
      history.entries.push_back({.action = Action::alloc, .address = next, .size = size});
      live.emplace_back(next, size);
      next += Address{1} << 27;
    }
  }
  return history;
}

void replay_million(benchmark::State& state, const char* conf) {
  const ReplayScript script = make_script(million_events());
  const ReplayConfig config = other_config(script, parse_allocator_options(conf));
  for (auto _ : state) benchmark::DoNotOptimize(replay(script, config));
  state.SetItemsProcessed(state.iterations() * 1'000'000);
}
BENCHMARK_CAPTURE(replay_million, native, "")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay_million, expandable, "expandable_segments:True")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay_million, max_split_size, "max_split_size_mb:64")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay_million, async, "backend:cudaMallocAsync")->Unit(benchmark::kMillisecond);

void script_of_million(benchmark::State& state) {
  const History history = million_events();
  for (auto _ : state) benchmark::DoNotOptimize(make_script(history));
}
BENCHMARK(script_of_million)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headroom
