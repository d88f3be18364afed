// GELU, SiLU, Hardswish, Mish, GLU, rsqrt: one kernel in eager, several operators in the file.
#include <array>

#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

void claim_unary(Recovery& r, NodeIndex last, ValueId x, std::string_view op) {
  r.claim({last, {x}, [&r, x, op] { r.emit(op, {r.tensor(x)}); }});
}

bool reads_number(const GraphView& g, NodeIndex n, double number) {
  return g.number(g.input(n, 0)) == number || g.number(g.input(n, 1)) == number;
}

NodeIndex first_reader(const GraphView& g, NodeIndex n) {
  const auto readers = g.readers(g.output(n));
  return readers.empty() ? no_node : readers[0];
}

/// x / √2, Erf, + 1, then · x · ½ in any order.
void find_gelu(Recovery& r, NodeIndex erf) {
  const GraphView& g = r.graph;
  const NodeIndex scale = g.producer(g.input(erf, 0));
  if (!g.is(scale, "Div") && !g.is(scale, "Mul")) return;
  const ValueId x = g.number(g.input(scale, 0)) ? g.input(scale, 1) : g.input(scale, 0);
  const NodeIndex add = first_reader(g, erf);
  if (!g.is(add, "Add")) return;
  const NodeIndex first = first_reader(g, add);
  if (!g.is(first, "Mul")) return;
  const NodeIndex second = first_reader(g, first);
  const ValueId other = g.other_input(first, g.output(add));
  if (other == x) {
    if (g.is(second, "Mul") && reads_number(g, second, 0.5)) claim_unary(r, second, x, "aten::gelu");
  } else if (const NodeIndex half = g.producer(other);
             g.is(half, "Mul") && g.reads(half, x) && reads_number(g, half, 0.5)) {
    // PyTorch's decomposition; before TorchScript it was written in Python.
    if (r.origins.has_text() || !r.mode.torch_names) claim_unary(r, first, x, "aten::gelu");
  } else if (g.number(other) == 0.5 && g.is(second, "Mul") && g.reads(second, x)) {
    claim_unary(r, second, x, "aten::gelu");
  }
}

/// ½·x·(1 + tanh(k·(x + c·x·x·x))): nn.GELU("tanh"). With Pow(x, 3) it is written in Python and stays as it is.
void find_tanh_gelu(Recovery& r, NodeIndex tanh) {
  const GraphView& g = r.graph;
  const NodeIndex scale = g.producer(g.input(tanh, 0)), add_one = first_reader(g, tanh);
  if (!g.is(scale, "Mul") || !g.is(add_one, "Add")) return;
  const NodeIndex a = g.producer(g.input(scale, 0)), b = g.producer(g.input(scale, 1));
  const NodeIndex inner = g.is(a, "Add") ? a : b;
  if (!g.is(inner, "Add")) return;
  for (const ValueId x : {g.input(inner, 0), g.input(inner, 1)}) {
    const NodeIndex cubic = g.producer(g.other_input(inner, x));
    if (!g.is(cubic, "Mul")) continue;
    bool cube = false;
    for (const ValueId factor : g.inputs(cubic)) {
      const NodeIndex m = g.producer(factor);
      if (!g.is(m, "Mul")) continue;
      if (g.reads(m, x)) cube = true;
      for (const ValueId deeper : g.inputs(m))
        if (const NodeIndex d = g.producer(deeper); g.is(d, "Mul") && g.reads(d, x)) cube = true;
    }
    if (!cube) continue;
    NodeIndex last = first_reader(g, add_one);
    if (!g.is(last, "Mul")) return;
    if (const NodeIndex more = first_reader(g, last); g.is(more, "Mul") && reads_number(g, more, 0.5)) last = more;
    r.claim({last, {x}, [&r, x] { r.emit("aten::gelu", {r.tensor(x), Text{"tanh"}}); }});
    return;
  }
}

/// Sigmoid (or HardSigmoid), then a product with its own input in the same module.
void find_gated(Recovery& r, NodeIndex gate, std::string_view op) {
  const GraphView& g = r.graph;
  const NodeIndex mul = g.only_reader(g.output(gate));
  const ValueId x = g.input(gate, 0);
  if (g.is(mul, "Mul") && g.reads(mul, x) && r.origins.same_scope(mul, gate)) claim_unary(r, mul, x, op);
}
void find_silu(Recovery& r, NodeIndex n) { find_gated(r, n, "aten::silu"); }
void find_hardswish(Recovery& r, NodeIndex n) { find_gated(r, n, "aten::hardswish"); }

/// x · tanh(softplus(x)) in one module.
void find_mish(Recovery& r, NodeIndex softplus) {
  const GraphView& g = r.graph;
  const NodeIndex tanh = g.only_reader(g.output(softplus));
  if (!g.is(tanh, "Tanh")) return;
  const NodeIndex mul = g.only_reader(g.output(tanh));
  const ValueId x = g.input(softplus, 0);
  if (g.is(mul, "Mul") && g.reads(mul, x) && r.origins.same_scope(mul, softplus)) claim_unary(r, mul, x, "aten::mish");
}

/// The first half of a Split, times the Sigmoid of the second.
void find_glu(Recovery& r, NodeIndex sigmoid) {
  const GraphView& g = r.graph;
  const ValueId gate = g.input(sigmoid, 0);
  const NodeIndex split = g.producer(gate), mul = g.only_reader(g.output(sigmoid));
  if (!g.is(split, "Split") || !g.is(mul, "Mul") || g.node(split).outputs.size() != 2) return;
  const ValueId half = g.node(split).output(0);
  if (g.output_index(gate) != 1 || g.only_reader(half) != mul || g.only_reader(gate) != sigmoid ||
      g.dims(half) != g.dims(gate))
    return;
  r.claim({mul, {g.input(split, 0)}, [&r, x = g.input(split, 0), axis = g.node(split).integer("axis", 0)] {
             r.emit("aten::glu", {r.tensor(x), axis});
           }});
}

/// Sqrt of a sum, then 1 / it.
void find_rsqrt(Recovery& r, NodeIndex n) {
  const GraphView& g = r.graph;
  const bool divides = g.is(n, "Div");
  if (divides && g.number(g.input(n, 0)) != 1.0) return;
  const NodeIndex sqrt = g.producer(g.input(n, divides ? 1 : 0));
  if (!g.is(sqrt, "Sqrt") || !g.is(g.producer(g.input(sqrt, 0)), "Add")) return;
  claim_unary(r, n, g.input(sqrt, 0), "aten::rsqrt");
}

constexpr std::array list{Pattern{"Erf", find_gelu},      Pattern{"Tanh", find_tanh_gelu},
                          Pattern{"Sigmoid", find_silu},  Pattern{"HardSigmoid", find_hardswish},
                          Pattern{"Div", find_rsqrt},     Pattern{"Reciprocal", find_rsqrt},
                          Pattern{"Softplus", find_mish}, Pattern{"Sigmoid", find_glu}};

}  // namespace

PatternFamily activation_patterns() { return list; }

}  // namespace headroom::recovery
