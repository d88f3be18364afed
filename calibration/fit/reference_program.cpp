#include "calibration/fit/reference_program.h"

#include <string>
#include <utility>

namespace headroom {
namespace {

class Builder {
 public:
  explicit Builder(Program& p) : program_(p), build_(p) {}

  SlotId input(const char* name, Dims dims) {
    const SlotId s = build_.slot(name);
    program_.inputs.push_back({.slot = s, .name = name, .dims = std::move(dims)});
    return s;
  }
  SlotId parameter(const std::string& name, Dims dims) {
    const SlotId s = build_.slot(name);
    Parameter& p = program_.parameters.emplace_back();
    p.slot = s;
    p.name = name;
    p.dims = std::move(dims);
    return s;
  }
  /// The result replaces the variable that `args[0]` is; the input stays the loop's.
  SlotId call(const char* op, std::vector<Arg> args) {
    const SlotId gone = std::get<SlotId>(args[0]);
    const SlotId out = build_.call(op, std::move(args), op, {}, op);
    if (gone != program_.inputs[0].slot) program_.calls.back().drops = {gone};
    return out;
  }
  SlotId linear(const std::string& name, SlotId x, std::int64_t in, std::int64_t out) {
    const SlotId weight = parameter(name + ".weight", {out, in}), bias = parameter(name + ".bias", {out});
    return call("aten::linear", {x, weight, bias});
  }

 private:
  Program& program_;
  ProgramBuilder build_;
};

}  // namespace

Program reference_program() {
  constexpr std::int64_t batch = 16, width = 256, side = 32, heads = 4, classes = 10;
  Program p;
  Builder b(p);
  SlotId x = b.input("x", {batch, 3, side, side});
  const SlotId kernel = b.parameter("conv.weight", {width, 3, 3, 3});
  x = b.call("aten::conv2d", {x, kernel, None{}, Dims{2, 2}, Dims{1, 1}});
  x = b.call("aten::relu", {x});
  x = b.call("aten::flatten.using_ints", {x, std::int64_t{2}});
  x = b.call("aten::transpose.int", {x, std::int64_t{1}, std::int64_t{2}});
  const SlotId scale = b.parameter("norm.weight", {width}), shift = b.parameter("norm.bias", {width});
  x = b.call("aten::layer_norm", {x, Dims{width}, scale, shift});
  x = b.linear("in", x, width, width);
  x = b.call("aten::view", {x, Dims{batch, -1, heads, width / heads}});
  x = b.call("aten::transpose.int", {x, std::int64_t{1}, std::int64_t{2}});
  x = b.call("aten::scaled_dot_product_attention", {x, x, x});
  x = b.call("aten::mean.dim", {x, Dims{2}});
  x = b.call("aten::flatten.using_ints", {x, std::int64_t{1}});
  x = b.call("aten::gelu", {x});
  x = b.linear("out", x, width, classes);
  p.calls.back().drops.clear();
  p.outputs.push_back({.slot = x, .name = "out", .dims = {batch, classes}});
  return p;
}

}  // namespace headroom
