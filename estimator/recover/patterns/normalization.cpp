// Layer norm of old opsets, group norm, F.normalize, variances.
#include <array>

#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

NodeIndex reader_of(const GraphView& g, ValueId v, std::string_view op) {
  for (const NodeIndex n : g.readers(v))
    if (g.is(n, op)) return n;
  return no_node;
}

/// ReduceMean, Sub, Pow 2, ReduceMean, Add, Sqrt, Div, [Mul, Add].
void find_layer_norm(Recovery& r, NodeIndex mean) {
  const GraphView& g = r.graph;
  constexpr std::int64_t has_operator = 17;  // what is written out in such a file was written out in Python
  if (g.model().opset() >= has_operator) return;
  const ValueId x = g.input(mean, 0);
  const NodeIndex sub = reader_of(g, g.output(mean), "Sub");
  if (sub == no_node || g.input(sub, 0) != x) return;
  const ValueId centered = g.output(sub);
  NodeIndex square = reader_of(g, centered, "Pow");
  if (square == no_node) square = reader_of(g, centered, "Mul");
  if (square == no_node) return;
  const NodeIndex variance = reader_of(g, g.output(square), "ReduceMean");
  const NodeIndex shifted = variance == no_node ? no_node : reader_of(g, g.output(variance), "Add");
  const NodeIndex root = shifted == no_node ? no_node : reader_of(g, g.output(shifted), "Sqrt");
  NodeIndex last = root == no_node ? no_node : reader_of(g, g.output(root), "Div");
  if (last == no_node || g.input(last, 0) != centered) return;
  ValueId weight, bias;
  if (const NodeIndex m = g.only_reader(g.output(last));
      g.is(m, "Mul") && g.is_weight(g.other_input(m, g.output(last)))) {
    weight = g.other_input(m, g.output(last));
    last = m;
    if (const NodeIndex a = g.only_reader(g.output(last));
        g.is(a, "Add") && g.is_weight(g.other_input(a, g.output(last)))) {
      bias = g.other_input(a, g.output(last));
      last = a;
    }
  }
  const Dims& in = g.dims(x);
  const std::size_t tail = weight.valid() ? g.dims(weight).size() : 1;
  if (tail > in.size() || !r.is_free(last)) return;
  const double epsilon = g.number(g.other_input(shifted, g.output(variance))).value_or(1e-5);
  r.claim(
      {last, {x}, [&r, x, weight, bias, epsilon, shape = Dims(in.end() - static_cast<std::ptrdiff_t>(tail), in.end())] {
         r.emit("aten::layer_norm", {r.tensor(x), shape, weight.valid() ? Arg(r.tensor(weight)) : Arg(None{}),
                                     bias.valid() ? Arg(r.tensor(bias)) : Arg(None{}), epsilon});
       }});
}

/// Reshape [0, G, -1], InstanceNormalization, Reshape, [Mul, Add] with weights that may be unsqueezed.
void find_group_norm(Recovery& r, NodeIndex norm) {
  const GraphView& g = r.graph;
  const NodeIndex grouped = g.producer(g.input(norm, 0));
  NodeIndex last = g.only_reader(g.output(norm));
  if (!g.is(grouped, "Reshape") || !g.is(last, "Reshape")) return;
  const ValueId x = g.input(grouped, 0);
  const Dims& in = g.dims(x);
  const Dims& split = g.dims(g.output(grouped));
  if (split.size() < 2 || in.size() < 2) return;
  ValueId affine[2];
  constexpr std::string_view ops[2] = {"Mul", "Add"};
  for (int k = 0; k < 2; ++k) {
    const NodeIndex next = g.only_reader(g.output(last));
    if (!g.is(next, ops[k])) break;
    ValueId p = g.other_input(next, g.output(last));
    for (NodeIndex q = g.producer(p); g.is(q, "Unsqueeze") || g.is(q, "Reshape"); q = g.producer(p)) p = g.input(q, 0);
    if (!g.is_weight(p) || g.value(p).count() != in[1]) break;
    affine[k] = p;
    last = next;
  }
  if (!r.is_free(last)) return;
  const std::int64_t groups = split[1];
  const double epsilon = g.node(norm).real("epsilon", 1e-5);
  r.claim({last, {x}, [&r, x, w = affine[0], b = affine[1], groups, epsilon, channels = in[1]] {
             const auto vector = [&](ValueId v) {
               return v.valid() ? Arg(r.parameters.vector(v, channels)) : Arg(None{});
             };
             r.emit("aten::group_norm", {r.tensor(x), groups, vector(w), vector(b), epsilon, true});
           }});
}

/// F.normalize: norm, clamp_min, expand, division.
void find_normalize(Recovery& r, NodeIndex norm) {
  const GraphView& g = r.graph;
  const ValueId x = g.input(norm, 0);
  NodeIndex bounded = reader_of(g, g.output(norm), "Clip");
  if (bounded == no_node) bounded = reader_of(g, g.output(norm), "Max");
  const NodeIndex wide = bounded == no_node ? no_node : reader_of(g, g.output(bounded), "Expand");
  const NodeIndex div = wide == no_node ? no_node : reader_of(g, g.output(wide), "Div");
  if (div == no_node || g.input(div, 0) != x || !r.is_free(div)) return;
  const Dims axes = g.attribute_or_input(norm, "axes", 1).value_or(Dims{-1});
  r.claim({div, {x}, [&r, x, axes] {
             const std::string name(r.graph.name(r.out()));
             const SlotId n = r.call("aten::linalg_vector_norm", {r.tensor(x), 2.0, axes, true}, name + ".norm");
             const SlotId c = r.call("aten::clamp_min", {n, 1e-12}, name + ".bounded");
             const SlotId e = r.call("aten::expand", {c, r.dims(x)}, name + ".wide");
             r.emit("aten::div.Tensor", {r.tensor(x), e});
           }});
}

/// x.var(dim) and x.std(dim): mean of the squared distances from the mean, for the unbiased ones times n and divided by
/// n - 1, then the root.
void find_variance(Recovery& r, NodeIndex mean) {
  const GraphView& g = r.graph;
  const NodeIndex square = g.producer(g.input(mean, 0));
  if (r.origins.has_text() || !g.is(square, "Mul") || g.input(square, 0) != g.input(square, 1)) return;
  const ValueId distance = g.input(square, 0);
  const NodeIndex sub = g.producer(distance);
  if (!g.is(sub, "Sub") || g.readers(distance).size() != 2) return;
  const ValueId x = g.input(sub, 0);
  const NodeIndex middle = g.producer(g.input(sub, 1));
  const auto axes = g.attribute_or_input(mean, "axes", 1);
  if (!g.is(middle, "ReduceMean") || g.input(middle, 0) != x || !g.node(middle).integer("keepdims", 1) ||
      axes != g.attribute_or_input(middle, "axes", 1))
    return;
  NodeIndex last = mean;
  std::int64_t correction = 0;
  if (const NodeIndex times = g.only_reader(g.output(mean)); g.is(times, "Mul")) {
    const NodeIndex over = g.only_reader(g.output(times));
    const auto n = g.number(g.other_input(times, g.output(mean)));
    const auto m = g.is(over, "Div") ? g.number(g.input(over, 1)) : std::nullopt;
    if (n && m && *n - *m >= 0 &&
        static_cast<std::int64_t>(*n) * g.value(g.output(mean)).count() == g.value(x).count()) {
      last = over;
      correction = static_cast<std::int64_t>(*n - *m);
    }
  }
  const NodeIndex root = g.only_reader(g.output(last));
  const bool deviation = g.is(root, "Sqrt");
  if (deviation) last = root;
  if (!r.is_free(last)) return;
  r.claim({last, {x}, [&r, x, axes, correction, deviation, keep = g.node(mean).integer("keepdims", 1) != 0] {
             r.emit(deviation ? "aten::std.correction" : "aten::var.correction",
                    {r.tensor(x), axes ? Arg(*axes) : Arg(None{}), correction, keep});
           }});
}

constexpr std::array list{Pattern{"ReduceMean", find_layer_norm}, Pattern{"ReduceMean", find_variance},
                          Pattern{"InstanceNormalization", find_group_norm}, Pattern{"ReduceL2", find_normalize}};

}  // namespace

PatternFamily normalization_patterns() { return list; }

}  // namespace headroom::recovery
