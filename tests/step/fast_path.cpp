// One layer of nn.TransformerEncoder in inference: the blocks as PyTorch 2.11 asked for them on an H200.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "estimator/shadow/shadow.h"
#include "estimator/step/session.h"

using namespace headroom;

namespace {

constexpr std::int64_t batch = 8, length = 96, width = 256, wide = 1024, heads = 8;

Program layer(bool norm_first) {
  Program p;
  p.training = false;
  ProgramBuilder b(p);
  const SlotId x = b.slot("x");
  p.inputs.push_back({.slot = x, .name = "x", .dims = {batch, length, width}});
  std::vector<Arg> args{x, width, heads};
  const auto parameter = [&](const std::string& name, Dims dims) {
    const SlotId s = b.slot(name);
    p.parameters.push_back({.slot = s, .name = name, .dims = std::move(dims)});
    args.push_back(s);
  };
  parameter("in_proj_weight", {3 * width, width});
  parameter("in_proj_bias", {3 * width});
  parameter("out_proj_weight", {width, width});
  parameter("out_proj_bias", {width});
  args.insert(args.end(), {false, norm_first, 1e-5});
  for (const char* norm : {"norm1", "norm2"}) {
    parameter(norm + std::string(".weight"), {width});
    parameter(norm + std::string(".bias"), {width});
  }
  parameter("linear1.weight", {wide, width});
  parameter("linear1.bias", {wide});
  parameter("linear2.weight", {width, wide});
  parameter("linear2.bias", {width});
  const SlotId y = b.call("aten::_transformer_encoder_layer_fwd", std::move(args), "y", {}, "");
  p.outputs = {{.slot = y, .name = "y", .dims = {batch, length, width}}};
  return p;
}

/// Bytes of what the second forward makes, and, negative, of what it lets go.
std::vector<std::int64_t> events(const Program& program) {
  Scenario scenario{.task = Task::infer, .loss = LossKind::none, .steps = 2};
  shadow::Shadow machine(*aten::table_for("2.11").table, {});
  Diagnostics diagnostics;
  const Program* const one[] = {&program};
  run_session(machine, one, scenario, 2, diagnostics);
  const shadow::Trace trace = machine.take_trace();
  std::vector<std::int64_t> out;
  bool second = false;
  for (const shadow::TraceEvent& e : trace.events) {
    if (e.kind == shadow::TraceEvent::Kind::phase) second = e.phase == Phase::forward && e.index == 1;
    if (!second || (e.kind != shadow::TraceEvent::Kind::alloc && e.kind != shadow::TraceEvent::Kind::free)) continue;
    const std::int64_t bytes = trace.blocks[static_cast<std::size_t>(e.index)].bytes.count();
    out.push_back(e.kind == shadow::TraceEvent::Kind::alloc ? bytes : -bytes);
  }
  return out;
}

constexpr std::int64_t stream = 786432, packed = 3 * stream, hidden = 4 * stream, statistics = 3072;

}  // namespace

TEST_CASE("a layer that norms last") {
  const std::vector<std::int64_t> expected{packed,      stream,     stream,      -stream,     -packed,    stream,
                                           statistics,  statistics, -statistics, -statistics, -stream,    hidden,
                                           stream,      -hidden,    stream,      statistics,  statistics, -statistics,
                                           -statistics, -stream,    -stream};
  CHECK(events(layer(false)) == expected);
}

TEST_CASE("a layer that norms first") {
  const std::vector<std::int64_t> expected{
      stream, statistics, statistics, -statistics, -statistics, packed, stream, stream,  -stream, -packed, -stream,
      stream, statistics, statistics, -statistics, -statistics, hidden, stream, -hidden, -stream, -stream};
  CHECK(events(layer(true)) == expected);
}
