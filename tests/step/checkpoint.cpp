// Which modules are blocks, and segments cut at any call.
#include "estimator/step/checkpoint.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/plan/shaped_programs.h"
#include "estimator/read/graph.h"
#include "estimator/shadow/shadow.h"
#include "estimator/step/session.h"

namespace headroom {
namespace {

ShapedPrograms bound(const std::string& file, Scenario& scenario) {
  scenario.batch = 2;
  scenario.sequence = 16;
  return shaped_programs(read_model(HEADROOM_ZOO "/" + file), scenario);
}

std::vector<std::string> blocks_of(const std::string& file) {
  Scenario scenario;
  return block_modules(*bound(file, scenario).programs[0]);
}

TEST_CASE("blocks are the repeated modules, also between stems and downsampling layers") {
  CHECK(blocks_of("gpt2.onnx").size() == 12);
  CHECK(blocks_of("resnet50.onnx").size() == 16);
  CHECK(blocks_of("mobilenet_v2.onnx").size() == 17);
  CHECK(blocks_of("unet.onnx").size() == 8);  // not the transposed convolutions between them
  CHECK(blocks_of("vgg16.onnx").empty());
  CHECK(blocks_of("mlp.onnx").empty());
}

/// Sizes of the parameters' gradients that one step makes, in their order.
std::vector<Bytes> gradients_of(const Program& program, const Scenario& scenario) {
  const Program* const one[] = {&program};
  shadow::Shadow machine(*aten::table_for("2.11").table, {});
  Session session(machine, one, scenario);
  session.setup();
  session.step(0, program);
  const shadow::Trace trace = machine.take_trace();
  std::vector<Bytes> gradients;
  for (const shadow::TraceEvent& e : trace.events)
    if (e.kind == shadow::TraceEvent::Kind::becomes && e.category == Category::gradients)
      gradients.push_back(trace.blocks[static_cast<std::size_t>(e.index)].bytes);
  return gradients;
}

TEST_CASE("a segment may begin at any call: what only gives a dtype may be gone when it runs again") {
  Scenario scenario{.precision = Precision::bf16, .loss = LossKind::causal_lm};
  const ShapedPrograms programs = bound("llama_small.onnx", scenario);
  const Program& program = *programs.programs[0];
  const std::vector<Bytes> without = gradients_of(program, scenario);
  REQUIRE(without.size() >= 50);
  scenario.checkpoint = CheckpointKind::plan;
  for (std::size_t begin = 0; begin + 1 < program.calls.size(); ++begin) {
    CAPTURE(begin);
    scenario.checkpoint_plan.segments = {{.begin = begin, .end = std::min(begin + 9, program.calls.size())}};
    CHECK(gradients_of(program, scenario) == without);
  }
}

TEST_CASE("segments inside a segment: what comes from the outer rerun still needs its gradient") {
  for (const char* file : {"gpt2.onnx", "bert_small.onnx", "llama_small.onnx", "resnet50.onnx"}) {
    CAPTURE(file);
    Scenario scenario;
    const ShapedPrograms programs = bound(file, scenario);
    const Program& program = *programs.programs[0];
    std::vector<Bytes> without = gradients_of(program, scenario);
    std::ranges::sort(without);
    const std::vector<std::string> blocks = block_modules(program);
    scenario.checkpoint = CheckpointKind::plan;
    for (const bool reentrant : {false, true}) {
      auto& segments = scenario.checkpoint_plan.segments;
      segments = {{.modules = {blocks[0], blocks[1], blocks[2]}, .reentrant = reentrant}};
      for (const std::string& b : blocks) segments.push_back({.modules = {b}});
      std::vector<Bytes> with = gradients_of(program, scenario);
      std::ranges::sort(with);  // a backward inside backward comes to them in another order
      CHECK(std::ranges::includes(with, without));
      CHECK(with.size() == without.size() + (reentrant ? 1 : 0));  // that of the segment's detached input
    }
  }
}

}  // namespace
}  // namespace headroom
