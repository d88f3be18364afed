#include "estimator/recover/patterns/written_functions.h"

#include <array>
#include <optional>
#include <string_view>

namespace headroom::recovery {

namespace {

/// Input i of the node that makes `v`, if that is of this kind; else invalid.
ValueId under(const GraphView& g, ValueId v, std::string_view op, std::size_t i = 0) {
  const NodeIndex n = g.producer(v);
  return g.is(n, op) ? g.input(n, i) : ValueId{};
}

/// t of 1 - t.
ValueId of_one_minus(const GraphView& g, ValueId v) {
  return g.number(under(g, v, "Sub", 0)) == 1.0 ? under(g, v, "Sub", 1) : ValueId{};
}

struct Product {
  ValueId a, b;
};
/// The factors of `v`, in both orders.
std::array<Product, 2> factors(const GraphView& g, ValueId v) {
  const ValueId a = under(g, v, "Mul", 0), b = under(g, v, "Mul", 1);
  return {Product{a, b}, Product{b, a}};
}

struct Loss {
  NodeIndex last = no_node;  ///< makes the losses, one an element
  std::string_view op;
  ValueId input, target, positive_weight;
  double number = 1;  ///< beta or delta
};

/// (1 - t) · x - w · log sigmoid(x), w = 1 or (p - 1) · t + 1: PyTorch's decomposition.
std::optional<Loss> logits_of_decomposition(const GraphView& g, NodeIndex sub) {
  Loss loss{sub, "aten::binary_cross_entropy_with_logits", {}, {}, {}};
  ValueId log = g.input(sub, 1);
  if (const ValueId sigmoid = under(g, log, "Log"); sigmoid.valid()) {
    loss.input = under(g, sigmoid, "Sigmoid");
  } else {
    for (const auto& [weight, logarithm] : factors(g, log))
      for (const auto& [shifted, unused] : factors(g, under(g, weight, "Add", 0))) {
        if (!shifted.valid() || !g.is(g.producer(shifted), "Sub")) continue;
        loss.input = under(g, under(g, logarithm, "Log"), "Sigmoid");
        loss.positive_weight = under(g, shifted, "Sub", 0);
      }
  }
  if (!loss.input.valid()) return std::nullopt;
  for (const auto& [a, b] : factors(g, g.input(sub, 0)))
    if (b.valid() && b == loss.input) loss.target = of_one_minus(g, a);
  return loss.target.valid() ? std::optional(loss) : std::nullopt;
}

/// -(t · log s [· p] + (1 - t) · log (1 - s)), s = sigmoid(x): the TorchScript exporter's.
std::optional<Loss> logits_of_symbolic(const GraphView& g, NodeIndex neg) {
  const ValueId sum = g.input(neg, 0);
  Loss loss{neg, "aten::binary_cross_entropy_with_logits", {}, {}, {}};
  ValueId first = under(g, sum, "Add", 0);
  if (g.is(g.producer(under(g, first, "Mul", 0)), "Mul")) {
    loss.positive_weight = under(g, first, "Mul", 1);
    first = under(g, first, "Mul", 0);
  }
  const ValueId target = under(g, first, "Mul", 0), sigmoid = under(g, under(g, first, "Mul", 1), "Log");
  const ValueId second = under(g, sum, "Add", 1);
  if (!target.valid() || of_one_minus(g, under(g, second, "Mul", 0)) != target) return std::nullopt;
  if (!sigmoid.valid() || of_one_minus(g, under(g, under(g, second, "Mul", 1), "Log")) != sigmoid) return std::nullopt;
  loss.input = under(g, sigmoid, "Sigmoid");
  loss.target = target;
  if (!loss.input.valid() || g.readers(sigmoid).size() != 2) return std::nullopt;
  return loss;
}

/// (t - 1) · max(log1p(-p), -100) - t · max(log p, -100).
std::optional<Loss> of_probabilities(const GraphView& g, NodeIndex sub) {
  for (const auto& [target, bounded] : factors(g, g.input(sub, 1))) {
    const ValueId p = under(g, under(g, bounded, "Max"), "Log");
    if (!p.valid()) continue;
    for (const auto& [shifted, other] : factors(g, g.input(sub, 0))) {
      const ValueId one_minus = under(g, under(g, other, "Max"), "Log");
      if (under(g, shifted, "Sub", 0) == target && under(g, under(g, one_minus, "Add"), "Neg") == p)
        return Loss{sub, "aten::binary_cross_entropy", p, target, {}};
    }
  }
  return std::nullopt;
}

/// where(a < n, …, …), a = |x - t|: smooth L1 divides the square by n, Huber multiplies the distance by it.
std::optional<Loss> of_distance(const GraphView& g, NodeIndex where) {
  const ValueId distance = under(g, g.input(where, 0), "Less", 0);
  const auto number = g.number(under(g, g.input(where, 0), "Less", 1));
  const ValueId difference = under(g, distance, "Abs");
  if (!number || !g.is(g.producer(difference), "Sub")) return std::nullopt;
  Loss loss{where, {}, under(g, difference, "Sub", 0), under(g, difference, "Sub", 1), {}, *number};
  const ValueId near = g.input(where, 1), far = g.input(where, 2);
  if (under(g, far, "Sub") == distance && (g.is(g.producer(near), "Div") || *number == 1.0))
    loss.op = "aten::smooth_l1_loss";
  else if (under(g, under(g, far, "Mul"), "Sub") == distance && under(g, near, "Mul", 1) == distance)
    loss.op = "aten::huber_loss";
  return loss.op.empty() ? std::nullopt : std::optional(loss);
}

void claim_loss(Recovery& r, const Loss& loss) {
  const GraphView& g = r.graph;
  NodeIndex last = loss.last;
  std::int64_t reduction = 0;  // at::Reduction: none, mean, sum
  if (const NodeIndex n = g.only_reader(g.output(last)); g.is(n, "ReduceMean") || g.is(n, "ReduceSum"))
    if (g.value(g.output(n)).count() == 1) {
      reduction = g.is(n, "ReduceMean") ? 1 : 2;
      last = n;
      if (const NodeIndex squeeze = g.only_reader(g.output(n)); g.is(squeeze, "Squeeze") &&
                                                                r.origins.group_of(squeeze) &&
                                                                r.origins.group_of(squeeze) == r.origins.group_of(n))
        last = squeeze;
    }
  std::vector<ValueId> reads{loss.input, loss.target};
  if (loss.positive_weight.valid()) reads.push_back(loss.positive_weight);
  r.claim({last, reads, [&r, loss, reduction, result = g.output(last)] {
             Args args{r.tensor(loss.input), r.tensor(loss.target)};
             if (loss.op.starts_with("aten::binary")) args.push_back(None{});
             if (loss.op.ends_with("logits"))
               args.push_back(loss.positive_weight.valid() ? Arg(r.tensor(loss.positive_weight)) : Arg(None{}));
             args.push_back(reduction);
             if (!loss.op.starts_with("aten::binary")) args.push_back(loss.number);
             r.emit(loss.op, std::move(args), result);
           }});
}

struct Cosine {
  NodeIndex last = no_node;
  ValueId a, b;
  std::int64_t dim = 0;
};

std::optional<std::int64_t> one_axis(const GraphView& g, NodeIndex n) {
  if (n == no_node) return std::nullopt;
  const auto axes = g.attribute_or_input(n, "axes", 1);
  return axes && axes->size() == 1 ? std::optional((*axes)[0]) : std::nullopt;
}

/// x of x / bounded(|x|), where F.normalize would expand the bounded norm.
ValueId of_normalised(const GraphView& g, ValueId v) {
  const ValueId x = under(g, v, "Div", 0);
  ValueId norm = under(g, under(g, v, "Div", 1), "Clip");
  if (g.is(g.producer(norm), "Identity")) norm = under(g, norm, "Identity");
  return x.valid() && under(g, norm, "ReduceL2") == x ? x : ValueId{};
}

/// sum(x / |x| · y / |y|): PyTorch's decomposition.
std::optional<Cosine> cosine_of_decomposition(const GraphView& g, NodeIndex sum) {
  const auto dim = one_axis(g, sum);
  const ValueId product = g.input(sum, 0);
  Cosine out{sum, of_normalised(g, under(g, product, "Mul", 0)), of_normalised(g, under(g, product, "Mul", 1)),
             dim.value_or(0)};
  return dim && out.a.valid() && out.b.valid() ? std::optional(out) : std::nullopt;
}

/// x · y / max(sqrt(x · x * y · y), eps): the TorchScript exporter's.
std::optional<Cosine> cosine_of_symbolic(const GraphView& g, NodeIndex div) {
  const ValueId squares = under(g, under(g, g.input(div, 1), "Max"), "Sqrt");
  const ValueId a = under(g, under(g, squares, "Mul", 0), "ReduceSum"),
                b = under(g, under(g, squares, "Mul", 1), "ReduceSum");
  const ValueId product = under(g, g.input(div, 0), "ReduceSum");
  const Cosine out{div, under(g, product, "Mul", 0), under(g, product, "Mul", 1),
                   one_axis(g, g.producer(g.input(div, 0))).value_or(0)};
  const auto is_square = [&](ValueId v, ValueId of) {
    return under(g, v, "Mul", 0) == of && under(g, v, "Mul", 1) == of;
  };
  if (!out.a.valid() || !is_square(a, out.a) || !is_square(b, out.b)) return std::nullopt;
  return out;
}

void claim_cosine(Recovery& r, const Cosine& cosine) {
  r.claim({cosine.last, {cosine.a, cosine.b}, [&r, cosine] {
             r.emit("aten::cosine_similarity", {r.tensor(cosine.a), r.tensor(cosine.b), cosine.dim, 1e-8},
                    r.graph.output(cosine.last));
           }});
}

/// x · (noise · a) + ((noise - 1) · b + c): alpha dropout.
void find_alpha_dropout(Recovery& r, NodeIndex add) {
  const GraphView& g = r.graph;
  const ValueId noise = under(g, under(g, under(g, g.input(add, 1), "Add"), "Mul"), "Add");
  if (!noise.valid()) return;
  for (const auto& [x, scaled] : factors(g, g.input(add, 0))) {
    if (under(g, scaled, "Mul") != noise) continue;
    r.claim(
        {add, {x}, [&r, x = x, add] {
           constexpr double unknown_probability = 0.1;  // only zero or not changes memory
           r.emit("aten::alpha_dropout", {r.tensor(x), unknown_probability, r.options.training}, r.graph.output(add));
         }});
    return;
  }
}

/// x of cat(scaled x, …) or cat(x, …) whose other two parts are x's squared norms, at `norms`, and ones.
ValueId beside_its_norms(const GraphView& g, ValueId joined, bool scaled, std::size_t norms) {
  const NodeIndex cat = g.producer(joined);
  if (!g.is(cat, "Concat") || g.node(cat).inputs.size() != 3) return {};
  ValueId x = g.input(cat, 0);
  if (scaled) x = g.number(under(g, x, "Mul", 1)) == -2.0 ? under(g, x, "Mul", 0) : under(g, x, "Mul", 1);
  const ValueId square = under(g, g.input(cat, norms), "ReduceSum");
  return x.valid() && under(g, square, "Pow") == x ? x : ValueId{};
}

/// sqrt(max([-2x, |x|², 1] · [y, 1, |y|²]ᵀ, 0)): torch.cdist by a matrix product.
void find_cdist(Recovery& r, NodeIndex sqrt) {
  const GraphView& g = r.graph;
  const NodeIndex bounded = g.producer(g.input(sqrt, 0));
  if (!g.is(bounded, "Max") && !g.is(bounded, "Clip")) return;
  const ValueId product = g.input(bounded, 0);
  const ValueId x = beside_its_norms(g, under(g, product, "MatMul", 0), true, 1);
  const ValueId y = beside_its_norms(g, under(g, under(g, product, "MatMul", 1), "Transpose"), false, 2);
  if (!x.valid() || !y.valid()) return;
  r.claim({sqrt, {x, y}, [&r, x, y, sqrt] {
             constexpr std::int64_t by_product = 1;
             r.emit("aten::cdist", {r.tensor(x), r.tensor(y), 2.0, by_product}, r.graph.output(sqrt));
           }});
}

/// F.affine_grid: the sum over the base grid's three numbers times theta, turned.
void find_affine_grid(Recovery& r, NodeIndex sum) {
  const GraphView& g = r.graph;
  const NodeIndex last = g.only_reader(g.output(sum));
  if (!g.is(last, "Reshape") || g.dims(g.output(last)).size() != 4 || g.dims(g.output(last))[3] != 2) return;
  for (const auto& [base, turned] : factors(g, g.input(sum, 0))) {
    const ValueId theta = under(g, under(g, turned, "Unsqueeze"), "Transpose");
    const bool is_grid = g.is(g.producer(under(g, base, "Reshape")), "Add") || (base.valid() && g.is_stored(base));
    if (!theta.valid() || !is_grid || g.dims(theta).size() != 3 || g.dims(theta)[1] != 2 || g.dims(theta)[2] != 3)
      continue;
    const Dims& d = g.dims(g.output(last));
    r.claim({last, {theta}, [&r, theta, size = Dims{d[0], 1, d[1], d[2]}, last] {
               r.emit("aten::affine_grid_generator", {r.tensor(theta), size, false}, r.graph.output(last));
             }});
    return;
  }
}

/// a + 1 · (b · c): torch.addcmul as the TorchScript exporter writes it, and addcdiv.
void find_addc(Recovery& r, NodeIndex add) {
  const GraphView& g = r.graph;
  const ValueId scaled = g.input(add, 1);
  for (const auto& [number, product] : factors(g, scaled)) {
    const std::string_view op = g.producer_op(product);
    if (g.number(number) != 1.0 || (op != "Mul" && op != "Div") || r.origins.has_text() ||
        g.only_reader(product) == no_node)
      continue;
    const NodeIndex inner = g.producer(product);
    r.claim({add,
             {g.input(add, 0), g.input(inner, 0), g.input(inner, 1)},
             [&r, a = g.input(add, 0), b = g.input(inner, 0), c = g.input(inner, 1),
              name = op == "Mul" ? "aten::addcmul" : "aten::addcdiv"] {
               r.emit(name, {r.tensor(a), r.tensor(b), r.tensor(c)});
             }});
    return;
  }
}

/// z + (q - z).detach(), the straight-through estimator, of which TorchScript keeps no detach: the sum is q without it.
void find_straight_through(Recovery& r, NodeIndex add) {
  const GraphView& g = r.graph;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const ValueId z = g.input(add, i), difference = g.input(add, 1 - i);
    if (z.valid() && !g.is_stored(z) && under(g, difference, "Sub", 1) == z && g.only_reader(difference) != no_node)
      r.restore_call(difference, "detach", {});
  }
}

}  // namespace

void plan_written_functions(Recovery& r) {
  const GraphView& g = r.graph;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    std::optional<Loss> loss;
    if (g.is(n, "Sub")) {
      loss = logits_of_decomposition(g, n);
      if (!loss) loss = of_probabilities(g, n);
    } else if (g.is(n, "Neg")) {
      loss = logits_of_symbolic(g, n);
    } else if (g.is(n, "Where")) {
      loss = of_distance(g, n);
    }
    if (loss) claim_loss(r, *loss);
    if (g.is(n, "Sqrt")) find_cdist(r, n);
    if (g.is(n, "ReduceSum")) find_affine_grid(r, n);
    if (g.is(n, "ReduceSum"))
      if (const auto cosine = cosine_of_decomposition(g, n)) claim_cosine(r, *cosine);
    if (g.is(n, "Add")) {
      find_addc(r, n);
      if (!r.origins.has_text()) find_straight_through(r, n);
      find_alpha_dropout(r, n);
    }
    if (g.is(n, "Div"))
      if (const auto cosine = cosine_of_symbolic(g, n)) claim_cosine(r, *cosine);
  }
}

}  // namespace headroom::recovery
