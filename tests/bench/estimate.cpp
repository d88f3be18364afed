// The stages of an estimate, one by one and together: a GPT-2 of the zoo, and chains of 1,000 to 100,000 nodes.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "estimator/allocate/allocator.h"
#include "estimator/bind/shaped_graph.h"
#include "estimator/plan/estimate.h"
#include "estimator/read/graph.h"
#include "estimator/recover/recover.h"
#include "estimator/shadow/shadow.h"
#include "estimator/step/session.h"
#include "tests/bench/chain.h"

namespace headroom::bench {
namespace {

/// A question, with what the stages make of it.
struct Question {
  std::filesystem::path file;
  Scenario scenario;
  Stages stages;

  Question(std::filesystem::path path, Scenario s) : file(std::move(path)), scenario(std::move(s)) {
    estimate(file, scenario, &stages);
  }
  Bindings bindings() const { return {.batch = scenario.batch, .sequence = scenario.sequence}; }
};

const Question& gpt2() {
  static const Question question(HEADROOM_ZOO "/gpt2.onnx", {.batch = 8, .sequence = 512, .loss = LossKind::causal_lm});
  return question;
}

const Question& chain_of(std::int64_t nodes) {
  static std::map<std::int64_t, Question> questions;
  const auto found = questions.find(nodes);
  if (found != questions.end()) return found->second;
  const auto path = std::filesystem::temp_directory_path() / ("headroom-chain-" + std::to_string(nodes) + ".onnx");
  std::ofstream(path, std::ios::binary) << chain(static_cast<int>(nodes));
  return questions.try_emplace(nodes, path, Scenario{.batch = 8}).first->second;
}

void read(benchmark::State& state, const Question& q) {
  for (auto _ : state) benchmark::DoNotOptimize(read_model(q.file));
}
void bind(benchmark::State& state, const Question& q) {
  for (auto _ : state) benchmark::DoNotOptimize(headroom::bind(*q.stages.model, q.bindings()));
}
void recover(benchmark::State& state, const Question& q) {
  for (auto _ : state) benchmark::DoNotOptimize(headroom::recover(*q.stages.graphs[0], {}));
}
/// Three steps on the shadow machine.
void step(benchmark::State& state, const Question& q) {
  const Program* const program = q.stages.programs[0].get();
  for (auto _ : state) {
    shadow::Shadow machine(*aten::table_for(q.scenario.torch_version).table, {});
    Diagnostics diagnostics;
    run_session(machine, {&program, 1}, q.scenario, 3, diagnostics);
    benchmark::DoNotOptimize(machine.take_trace());
  }
}
void allocate(benchmark::State& state, const Question& q) {
  for (auto _ : state) benchmark::DoNotOptimize(run_timeline(*q.stages.trace, *make_allocator(AllocatorOptions{}, {})));
}
void whole(benchmark::State& state, const Question& q) {
  for (auto _ : state) benchmark::DoNotOptimize(estimate(q.file, q.scenario));
}

using Stage = void (*)(benchmark::State&, const Question&);
void of_gpt2(benchmark::State& state, Stage stage) { stage(state, gpt2()); }
void of_chain(benchmark::State& state, Stage stage) {
  stage(state, chain_of(state.range(0)));
  state.SetComplexityN(state.range(0));
}

#define HEADROOM_BENCH_STAGE(STAGE)                                        \
  BENCHMARK_CAPTURE(of_gpt2, STAGE, STAGE)->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(of_chain, STAGE, STAGE)                                \
      ->Unit(benchmark::kMillisecond)                                      \
      ->Args({1'000})                                                      \
      ->Args({3'000})                                                      \
      ->Args({10'000})                                                     \
      ->Args({100'000})                                                    \
      ->Complexity(benchmark::oN)
HEADROOM_BENCH_STAGE(read);
HEADROOM_BENCH_STAGE(bind);
HEADROOM_BENCH_STAGE(recover);
HEADROOM_BENCH_STAGE(step);
HEADROOM_BENCH_STAGE(allocate);
HEADROOM_BENCH_STAGE(whole);

}  // namespace
}  // namespace headroom::bench
