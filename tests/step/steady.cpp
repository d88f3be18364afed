// A step that is repeated against the same step executed: the traces are equal, block by block and event by event.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "estimator/plan/shaped_programs.h"
#include "estimator/read/graph.h"
#include "estimator/shadow/shadow.h"
#include "estimator/step/session.h"

namespace headroom {
namespace {

struct Run {
  shadow::Trace trace;
  int repeated = 0;
};

/// Five steps, of which those are repeated that can be, and the second's pass, or none: where every call is noted.
Run run(const Program& program, const Scenario& scenario, bool repeat) {
  shadow::Shadow machine(*aten::table_for("2.11").table, {});
  shadow::StepLog log;
  if (!repeat) machine.recorder().log = &log;
  const Program* const programs[] = {&program};
  Session session(machine, programs, scenario);
  session.setup();
  Run r;
  for (int i = 0; i < 5; ++i) {
    if (repeat && i > 0 && machine.repeat_step(i))
      ++r.repeated;
    else
      session.step(i, program);
  }
  r.trace = machine.take_trace();
  return r;
}

void check(const Program& program, const Scenario& scenario, int repeated) {
  const Run executed = run(program, scenario, false), with = run(program, scenario, true);
  CHECK(with.repeated == repeated);
  REQUIRE(with.trace.blocks.size() == executed.trace.blocks.size());
  REQUIRE(with.trace.events.size() == executed.trace.events.size());
  std::size_t differing = 0;
  for (std::size_t i = 0; i < with.trace.blocks.size(); ++i) {
    const shadow::TraceBlock &a = with.trace.blocks[i], &b = executed.trace.blocks[i];
    differing += a.bytes != b.bytes || a.category != b.category || a.phase != b.phase || a.step != b.step ||
                 a.module != b.module || a.site != b.site || a.op != b.op || a.name != b.name;
  }
  for (std::size_t i = 0; i < with.trace.events.size(); ++i) {
    const shadow::TraceEvent &a = with.trace.events[i], &b = executed.trace.events[i];
    differing += a.kind != b.kind || a.category != b.category || a.phase != b.phase || a.index != b.index;
  }
  CHECK(differing == 0);
}

void check(const std::string& file, Scenario scenario, int repeated) {
  CAPTURE(file);
  scenario.batch = 2;
  scenario.sequence = 16;
  check(*shaped_programs(read_model(HEADROOM_ZOO "/" + file), scenario).programs[0], scenario, repeated);
}

/// Its second result has a graph of its own, of which the loss knows nothing: it goes with the result.
Program with_a_result_beside_the_loss() {
  Program p;
  ProgramBuilder b(p);
  const SlotId x = b.slot("x"), w = b.slot("w"), v = b.slot("v");
  p.inputs.push_back({.slot = x, .name = "x", .dims = {4, 256}});
  for (const auto& [slot, name] : {std::pair{w, "w"}, {v, "v"}})
    p.parameters.push_back({.slot = slot, .name = name, .dims = {8, 256}});
  const SlotId scores = b.call("aten::linear", {x, w}, "scores", {}, "");
  const SlotId other = b.call("aten::linear", {x, v}, "other", {}, "");
  const SlotId hot = b.call("aten::exp", {other}, "hot", {}, "");
  p.calls.back().drops = {other};
  const SlotId product = b.call("aten::mul.Tensor", {hot, hot}, "product", {}, "");
  p.calls.back().drops = {hot};
  p.outputs = {{.slot = scores, .name = "scores", .dims = {4, 8}},
               {.slot = product, .name = "product", .dims = {4, 8}}};
  return p;
}

TEST_CASE("a result that no gradient reaches keeps its graph until the next one comes") {
  check(with_a_result_beside_the_loss(), {}, 3);
}

TEST_CASE("steps 2, 3 and 4 repeat step 1") {
  check("gpt2.onnx", {}, 3);
  check("gpt2.onnx", {.precision = Precision::amp_fp16, .clip_grad = true}, 3);
  check("gpt2.onnx", {.checkpoint = CheckpointKind::blocks}, 3);
  check("gpt2.onnx", {.task = Task::infer}, 3);
  check("unet.onnx", {.optimizer = OptimizerKind::sgd_momentum, .channels_last = true}, 3);
  check("lstm_lm.ts.onnx", {.optimizer = OptimizerKind::adagrad, .keep_grads = true}, 3);
  check("translator.onnx", {.zero_grad = ZeroGrad::before_backward, .outputs = OutputsKept::drop}, 3);
}

bool repeats_pass(const std::string& file, Scenario scenario) {
  scenario.batch = 2;
  scenario.sequence = 16;
  const ShapedPrograms programs = shaped_programs(read_model(HEADROOM_ZOO "/" + file), scenario);
  shadow::Shadow machine(*aten::table_for("2.11").table, {});
  Session session(machine, programs.order, scenario);
  session.setup();
  session.step(0, *programs.programs[0]);
  return machine.repeat_pass(1);
}

TEST_CASE("the second step's pass is the first's") {
  CHECK(repeats_pass("gpt2.onnx", {}));
  CHECK(repeats_pass("gpt2.onnx", {.accumulate = 2, .outputs = OutputsKept::drop}));
  CHECK(repeats_pass("gpt2.onnx", {.checkpoint = CheckpointKind::blocks}));
  CHECK(repeats_pass("unet.onnx", {.precision = Precision::amp_bf16}));
  CHECK(repeats_pass("vit_16.onnx", {.task = Task::infer}));
}

TEST_CASE("passes that find or leave something else are executed") {
  CHECK_FALSE(repeats_pass("mlp.onnx", {.keep_grads = true}));
  CHECK_FALSE(repeats_pass("mlp.onnx", {.zero_grad = ZeroGrad::before_backward}));
  CHECK_FALSE(repeats_pass("mlp.onnx", {.leak = Leak::loss}));
  CHECK_FALSE(repeats_pass("mlp.onnx", {.precision = Precision::amp_fp16}));  // GradScaler makes its scale
}

TEST_CASE("a loop that keeps every loss has no steady state") { check("mlp.onnx", {.leak = Leak::loss}, 0); }

TEST_CASE("GradScaler skips steps: the first that it does not skip makes the optimizer's state") {
  Scenario scenario{.precision = Precision::amp_fp16, .skipped_steps = 2};
  scenario.batch = 2;
  const ShapedPrograms programs = shaped_programs(read_model(HEADROOM_ZOO "/mlp.onnx"), scenario);
  const Program* const one[] = {programs.programs[0].get()};
  shadow::Shadow machine(*aten::table_for("2.11").table, {});
  Diagnostics ignored;
  run_session(machine, one, scenario, 5, ignored);
  const shadow::Trace trace = machine.take_trace();
  std::array<std::size_t, 5> states{};
  for (const shadow::TraceBlock& b : trace.blocks)
    if (b.category == Category::optimizer_state && b.phase == Phase::optimizer)
      ++states.at(static_cast<std::size_t>(b.step));
  CHECK(states[0] == 0);
  CHECK(states[1] == 0);
  CHECK(states[2] > 2);
  CHECK(states[3] == 0);
}

}  // namespace
}  // namespace headroom
