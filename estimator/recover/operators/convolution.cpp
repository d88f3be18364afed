// Conv, ConvTranspose and their relatives.
#include "estimator/recover/convolution.h"

#include <algorithm>
#include <array>

#include "estimator/recover/operators/operators.h"

namespace headroom::recovery {

namespace {

Dims attribute(const Node& node, std::string_view name, std::size_t rank, std::int64_t fallback) {
  const auto given = node.integers(name);
  Dims out;
  for (std::size_t i = 0; i < rank; ++i) out.push_back(i < given.size() ? given[i] : fallback);
  return out;
}

/// Pads before and after each spatial axis; auto_pad worked out from the shapes.
std::pair<Dims, Dims> pads_of(const Node& node, const Dims& in, const Dims& out, const Dims& kernel, const Dims& stride,
                              const Dims& dilation) {
  const std::size_t rank = kernel.size();
  const auto given = node.integers("pads");
  const std::string_view automatic = node.text("auto_pad", "NOTSET");
  Dims before(rank, 0), after(rank, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    if (automatic.starts_with("SAME")) {
      const std::int64_t span = (kernel[i] - 1) * dilation[i] + 1;
      const std::int64_t total = std::max<std::int64_t>(0, (out[i + 2] - 1) * stride[i] + span - in[i + 2]);
      before[i] = automatic == "SAME_LOWER" ? (total + 1) / 2 : total / 2;
      after[i] = total - before[i];
    } else if (given.size() == 2 * rank) {
      before[i] = given[i];
      after[i] = given[i + rank];
    }
  }
  return {before, after};
}

}  // namespace

std::int64_t output_channels(const GraphView& graph, NodeIndex conv) {
  const Dims& w = graph.dims(graph.input(conv, 1));
  if (w.size() < 2) return 0;
  return graph.is(conv, "ConvTranspose") ? w[1] * graph.node(conv).integer("group", 1) : w[0];
}

SlotId call_convolution(Recovery& r, NodeIndex conv, SlotId x, SlotId weight, Arg bias, std::string name) {
  const Node& node = r.graph.node(conv);
  const Dims& in = r.graph.dims(r.graph.input(conv, 0));
  const Dims& out = r.graph.dims(r.graph.output(conv));
  const Dims& w = r.graph.dims(r.graph.input(conv, 1));
  const std::size_t rank = in.size() >= 2 ? in.size() - 2 : 0;
  const Dims kernel(w.begin() + std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(w.size())), w.end());
  const Dims stride = attribute(node, "strides", rank, 1), dilation = attribute(node, "dilations", rank, 1);
  const std::int64_t groups = node.integer("group", 1);
  const std::string kind = std::to_string(rank) + "d";
  auto [before, after] = pads_of(node, in, out, kernel, stride, dilation);
  if (node.op_type == "ConvTranspose") {
    Dims extra = attribute(node, "output_padding", rank, 0);
    // output = (in - 1)·stride - before - after + span + extra: what the pads do not share is output padding.
    for (std::size_t i = 0; i < rank; ++i) {
      const std::int64_t span = (kernel[i] - 1) * dilation[i] + 1;
      extra[i] = std::max<std::int64_t>(0, out[i + 2] - ((in[i + 2] - 1) * stride[i] - 2 * before[i] + span));
    }
    const std::string op = "aten::conv_transpose" + kind + (rank == 1 ? "" : ".input");
    return r.call(rank == 1 ? "aten::conv_transpose1d" : op, {x, weight, bias, stride, before, extra, groups, dilation},
                  std::move(name));
  }
  if (before != after) {
    Dims pads;
    for (std::size_t i = rank; i-- > 0;) {
      pads.push_back(before[i]);
      pads.push_back(after[i]);
    }
    x = r.call("aten::constant_pad_nd", {x, pads, 0.0}, name + ".padded");
    before.assign(rank, 0);
  }
  return r.call("aten::conv" + kind, {x, weight, bias, stride, before, dilation, groups}, std::move(name));
}

namespace {

void conv(Recovery& r) {
  const SlotId s =
      call_convolution(r, r.node(), r.tensor(0), r.tensor(1), r.optional_tensor(2), std::string(r.graph.name(r.out())));
  r.define(r.out(), s);
}

constexpr std::array list{
    OperatorHandler{"Conv", conv},
    OperatorHandler{"ConvTranspose", conv},
};

}  // namespace

OperatorFamily convolution_operators() { return list; }

}  // namespace headroom::recovery
