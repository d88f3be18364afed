#include "estimator/shadow/shadow.h"
#include "estimator/shadow/tables/aten_table.h"
#include "estimator/step/checkpoint.h"
#include "tests/operators/peaks/figures.h"
#include "tests/operators/replay.h"

namespace headroom::peaks {
namespace {

constexpr int blocks = 8;

/// h = x * 1.0, then eight times h = h + b(gelu(a(norm(h)))).
struct Net {
  Program program;
  ProgramBuilder builder{program};
  SlotId input = builder.slot("x"), result;
  std::vector<SegmentRange> segments;

  explicit Net(bool checkpointed, bool reentrant) {
    SlotId h = builder.call("aten::mul.Tensor", {input, 1.0}, "h", {}, "");
    for (int i = 0; i < blocks; ++i) {
      const std::size_t begin = program.calls.size();
      const SlotId gain = parameter({1024}), shift = parameter({1024});
      const SlotId wide = parameter({4096, 1024}), wide_bias = parameter({4096});
      const SlotId narrow = parameter({1024, 4096}), narrow_bias = parameter({1024});
      const SlotId norm = call("aten::layer_norm", {h, Dims{1024}, gain, shift}, {});
      const SlotId a = call("aten::linear", {norm, wide, wide_bias}, {norm});
      const SlotId act = call("aten::gelu", {a}, {a});
      const SlotId b = call("aten::linear", {act, narrow, narrow_bias}, {act});
      h = call("aten::add.Tensor", {h, b}, {b, h});
      if (checkpointed) segments.push_back({begin, program.calls.size(), reentrant, {}});
    }
    result = h;
    program.outputs.push_back({.slot = h, .name = "h"});
  }

 private:
  SlotId parameter(Dims dims) {
    const SlotId s = builder.slot("p");
    program.parameters.push_back({.slot = s, .name = "p", .dims = std::move(dims)});
    return s;
  }
  SlotId call(std::string_view op, std::vector<Arg> args, Slots drops) {
    const SlotId s = builder.call(op, std::move(args), "y", {}, "");
    program.calls.back().drops = std::move(drops);
    return s;
  }
};

}  // namespace

Figures of_checkpoints(std::string_view name) {
  const Net net(name != "ckpt none", name == "ckpt reentrant");
  shadow::Shadow m(*aten::table_for("2.11").table, probes::recording_card());
  m.reserve_slots(net.program.slot_count());
  const Dims shape{4, 1024, 1024};
  m.create(net.input, {.dims = shape, .requires_grad = true});
  for (const auto& p : net.program.parameters)
    m.create(p.slot, {.dims = p.dims, .requires_grad = true, .parameter = true});
  m.phase(Phase::forward, 0);
  ForwardPass forward(m, net.program, net.segments);
  forward.run();
  m.phase(Phase::backward, 0);
  m.backward(net.result);
  m.phase(Phase::setup, 0);
  const auto w = windows(m.take_trace());
  // The probe made the gradient of the result before it looked.
  const std::int64_t grad = element_count(shape) * 4;
  return {{"fwd_peak", w[0].peak}, {"fwd_left", w[0].left}, {"bwd_peak", w[1].peak - grad}, {"bwd_left", w[1].left}};
}

}  // namespace headroom::peaks
