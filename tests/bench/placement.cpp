// Where to place checkpoints, on chains of 1,000 and 10,000 nodes: the front alone, and the whole answer, simulated.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "estimator/plan/checkpoint/planner.h"
#include "estimator/read/graph.h"
#include "tests/bench/chain.h"

namespace headroom::bench {
namespace {

std::filesystem::path file_of(std::int64_t nodes) {
  const auto path = std::filesystem::temp_directory_path() / ("headroom-chain-" + std::to_string(nodes) + ".onnx");
  std::ofstream(path, std::ios::binary) << chain(static_cast<int>(nodes));
  return path;
}

void front(benchmark::State& state) {
  Estimator estimator(file_of(state.range(0)));
  const Scenario scenario{.batch = 4096};
  Stages stages;
  estimator.estimate(scenario, &stages);
  const ShapedPrograms programs{stages.graphs, stages.programs, {stages.programs[0].get()}};
  for (auto _ : state) benchmark::DoNotOptimize(place_checkpoints(step_profile(programs, scenario)));
}

void answer(benchmark::State& state) {
  const auto model = std::make_shared<const Model>(read_model(file_of(state.range(0))));
  for (auto _ : state) {
    Estimator estimator(model);  // what it keeps answers no later question
    benchmark::DoNotOptimize(plan_checkpoints(estimator, Scenario{.batch = 4096}, {.most_recomputed = 0.1}));
  }
}

BENCHMARK(front)->Unit(benchmark::kMillisecond)->Arg(1'000)->Arg(10'000);
BENCHMARK(answer)->Unit(benchmark::kMillisecond)->Arg(1'000)->Arg(10'000);

}  // namespace
}  // namespace headroom::bench
