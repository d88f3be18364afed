#include "estimator/recover/modules/bloom.h"

namespace headroom::recovery {

namespace {

bool in_bloom_gelu(const Recovery& r, NodeIndex n) {
  const std::string_view path = r.origins.module(n);
  return r.origins.module_class(n).ends_with("BloomGelu") || path.ends_with(".gelu_impl") || path == "gelu_impl";
}

/// (x * 0.5) * (1 + tanh(...)): the last product, and x.
struct BloomGelu {
  NodeIndex product = no_node;
  ValueId half, gate, x;
};

std::optional<BloomGelu> bloom_gelu_at(const Recovery& r, NodeIndex tanh) {
  const GraphView& g = r.graph;
  const NodeIndex add = g.only_reader(g.output(tanh));
  if (!g.is(add, "Add") || !in_bloom_gelu(r, tanh)) return std::nullopt;
  BloomGelu out;
  out.gate = g.output(add);
  out.product = g.only_reader(out.gate);
  if (!g.is(out.product, "Mul")) return std::nullopt;
  out.half = g.other_input(out.product, out.gate);
  const NodeIndex half = g.producer(out.half);
  if (!g.is(half, "Mul")) return std::nullopt;
  out.x = g.number(g.input(half, 0)) ? g.input(half, 1) : g.input(half, 0);
  return out;
}

}  // namespace

void plan_bloom_gelus(Recovery& r) {
  if (!r.options.training) return;
  std::size_t places = 0;
  Bytes bound;
  for (std::size_t i = 0; i < r.graph.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!r.graph.is(n, "Tanh")) continue;
    const auto gelu = bloom_gelu_at(r, n);
    if (!gelu) continue;
    // Its forward runs without a graph and saves x, as the kernel of the same function does: the kernel's result stands
    // for that of the last product. Only its backward, written in Python, has more temporaries.
    r.claim({gelu->product, {gelu->half, gelu->gate, gelu->x}, [&r, gelu = *gelu] {
               r.emit("aten::gelu", {r.tensor(gelu.x), Text{"tanh"}}, r.graph.output(gelu.product));
               r.effect("aten::mul_.Tensor", {r.tensor(gelu.half), r.tensor(gelu.gate)});
             }});
    for (const NodeIndex reader : r.graph.readers(gelu->x))
      if (in_bloom_gelu(r, reader))
        r.override_operand(reader, gelu->x, [&r, x = gelu->x] {
          return r.call("aten::detach", {r.tensor(x)}, std::string(r.graph.name(x)) + ".detached");
        });
    constexpr std::int64_t temporaries = 4;
    bound = std::max(bound, bytes_of(DType::f32, r.graph.value(gelu->x).count() * temporaries));
    ++places;
  }
  if (places)
    r.diagnose("custom-backward", Severity::info,
               std::to_string(places) + " GELUs have a backward written in Python, whose temporaries are not modelled",
               bound);
}

}  // namespace headroom::recovery
