// nn.Linear, transformers' Conv1D, baddbmm.
#include <array>

#include "estimator/recover/modules/t5.h"
#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

/// A bias added to the product, on either side; one that is computed where the TorchScript exporter writes F.linear's.
struct Biased {
  NodeIndex last;
  ValueId bias;
};

Biased with_bias(const Recovery& r, NodeIndex product, std::int64_t columns) {
  const GraphView& g = r.graph;
  const NodeIndex add = g.only_reader(g.output(product));
  if (!g.is(add, "Add") || !r.is_free(add)) return {product, {}};
  const ValueId bias = g.other_input(add, g.output(product));
  if (g.dims(bias) != Dims{columns}) return {product, {}};
  const bool of_function = !r.origins.has_text() && r.mode.torch_names && g.input(add, 0) == bias;
  return g.is_weight(bias, 1) || of_function ? Biased{add, bias} : Biased{product, {}};
}

void claim_linear(Recovery& r, NodeIndex last, ValueId x, ValueId weight, bool reversed, ValueId bias) {
  r.claim({last, {x, bias}, [&r, x, weight, reversed, bias] {
             // A stored [K, N] weight is eager's [N, K] one, transposed by folding.
             const SlotId w = r.parameters.stored(weight, reversed);
             r.parameters.name_weight_of(w, r.path());
             const SlotId input = cast_before_linear(r, r.tensor(x), w);
             r.emit("aten::linear", {input, w, bias.valid() ? Arg(r.tensor(bias)) : Arg(Unset{})});
           }});
}

/// x.baddbmm(a, b, beta, alpha): both factors stay in the file even where they are one.
bool find_baddbmm(Recovery& r, NodeIndex product) {
  const GraphView& g = r.graph;
  const ValueId a = g.input(product, 0), b = g.input(product, 1);
  if (g.dims(a).size() != 3 || g.dims(b).size() != 3 || g.dims(a)[0] != g.dims(b)[0]) return false;
  const auto scaled = [&](NodeIndex n) -> std::optional<std::pair<ValueId, double>> {
    if (!g.is(n, "Mul")) return std::nullopt;
    for (std::size_t i = 0; i < 2; ++i)
      if (const auto factor = g.number(g.input(n, i)); factor && g.producer_op(g.input(n, i)) == "Cast")
        return std::pair(g.input(n, 1 - i), *factor);
    return std::nullopt;
  };
  const NodeIndex times = g.only_reader(g.output(product));
  const auto left = scaled(times);
  const NodeIndex add = left ? g.only_reader(g.output(times)) : no_node;
  if (!g.is(add, "Add") || !r.is_free(add) || !r.origins.same_scope(add, product)) return false;
  const auto right = scaled(g.producer(g.other_input(add, g.output(times))));
  if (!right) return false;
  r.claim({add, {right->first, a, b}, [&r, x = right->first, a, b, beta = right->second, alpha = left->second] {
             r.emit("aten::baddbmm", {r.tensor(x), r.tensor(a), r.tensor(b), beta, alpha});
           }});
  return true;
}

/// Transpose(W) MatMul [Add] · MatMul(x, W stored as [K, N]) [Add]
void find_matmul(Recovery& r, NodeIndex n) {
  const GraphView& g = r.graph;
  const ValueId x = g.input(n, 0), w = g.input(n, 1);
  const NodeIndex t = g.producer(w);
  if (g.is(t, "Transpose") && g.is_weight(g.input(t, 0), 2)) {
    const ValueId weight = g.input(t, 0);
    const auto [last, bias] = with_bias(r, n, g.dims(weight)[0]);
    return claim_linear(r, last, x, weight, false, bias);
  }
  if (!r.origins.has_text() && find_baddbmm(r, n)) return;
  if (!g.is_weight(w, 2)) return;
  const auto [last, bias] = with_bias(r, n, g.dims(w)[1]);
  // Folding transposed nn.Linear's weight and gave it a new name; a matrix product with a named one is written so.
  if (is_anonymous(g.name(w)) || bias.valid() || !r.mode.torch_names)
    claim_linear(r, last, x, w, is_anonymous(g.name(w)) || !r.mode.torch_names, bias);
}

/// Gemm transB=1: linear. transB=0: with a named weight addmm (Conv1D), else a linear whose weight was transposed.
void find_gemm(Recovery& r, NodeIndex n) {
  const GraphView& g = r.graph;
  const ValueId x = g.input(n, 0), w = g.input(n, 1), bias = g.input(n, 2);
  if (!g.is_weight(w, 2) || g.node(n).integer("transA", 0)) return;
  if (bias.valid() && !(g.is_weight(bias) && g.dims(bias).size() <= 1)) return;
  if (g.node(n).integer("transB", 0)) return claim_linear(r, n, x, w, false, bias);
  if (is_anonymous(g.name(w)) || !r.mode.torch_names || !bias.valid()) return claim_linear(r, n, x, w, true, bias);
  r.claim({n, {x}, [&r, x, w, bias] { r.emit("aten::addmm", {r.tensor(bias), r.tensor(x), r.tensor(w)}); }});
}

constexpr std::array list{Pattern{"MatMul", find_matmul}, Pattern{"Gemm", find_gemm}};

}  // namespace

PatternFamily linear_patterns() { return list; }

}  // namespace headroom::recovery
