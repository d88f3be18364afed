#include "estimator/recover/modules/recurrent_cell.h"

#include <algorithm>
#include <optional>

namespace headroom::recovery {

namespace {

/// The parts of a value that is split into equal ones: by Split, or SplitToSequence and SequenceAt.
std::vector<ValueId> parts_of(const GraphView& g, ValueId packed) {
  const NodeIndex n = g.only_reader(packed);
  std::vector<ValueId> out;
  if (g.is(n, "Split")) {
    for (const ValueId v : g.node(n).outputs) out.push_back(v);
  } else if (g.is(n, "SplitToSequence")) {
    for (const NodeIndex reader : g.readers(g.output(n))) {
      const auto i = g.is(reader, "SequenceAt") ? g.number(g.input(reader, 1)) : std::nullopt;
      if (!i || *i < 0 || *i > 3) return {};
      if (out.size() <= static_cast<std::size_t>(*i)) out.resize(static_cast<std::size_t>(*i) + 1);
      out[static_cast<std::size_t>(*i)] = g.output(reader);
    }
  }
  return out;
}

/// x @ weight.T + bias.
struct Product {
  NodeIndex node = no_node;
  ValueId x;
};

std::optional<Product> product_at(const GraphView& g, ValueId v) {
  const NodeIndex n = g.producer(v);
  const bool linear =
      g.is(n, "Gemm") && g.node(n).integer("transB", 0) != 0 && g.is_weight(g.input(n, 1), 2) && g.input(n, 2).valid();
  return linear ? std::optional(Product{n, g.input(n, 0)}) : std::nullopt;
}

/// The weight or bias that the product reads: the text names it even where the file has merged equal ones.
SlotId parameter_of(Recovery& r, NodeIndex product, std::size_t i) {
  const ValueId v = r.graph.input(product, i);
  const FxGroup* group = r.origins.group_of(product);
  const FxArg* named = group && group->fx.target == "aten.linear.default" ? group->fx.arg(i) : nullptr;
  if (named && named->is_reference() && named->text.starts_with("p_"))
    return r.named_parameter(named->text, r.dims(v), r.dtype(v));
  return r.tensor(v);
}

Args weights_of(Recovery& r, NodeIndex of_input, NodeIndex of_hidden) {
  return {parameter_of(r, of_input, 1), parameter_of(r, of_hidden, 1), parameter_of(r, of_input, 2),
          parameter_of(r, of_hidden, 2)};
}

/// The node of this kind that alone reads both.
NodeIndex joined(const GraphView& g, std::string_view op, ValueId a, ValueId b) {
  if (!a.valid() || !b.valid()) return no_node;
  for (const NodeIndex n : g.readers(a))
    if (g.is(n, op) && g.reads(n, b)) return n;
  return no_node;
}

ValueId applied(const GraphView& g, std::string_view op, ValueId v) {
  if (!v.valid()) return {};
  for (const NodeIndex n : g.readers(v))
    if (g.is(n, op)) return g.output(n);
  return {};
}

ValueId output_of(const GraphView& g, NodeIndex n) { return n == no_node ? ValueId{} : g.output(n); }

/// gates = linear(h) + linear(x), split into i, f, g, o; c' = σ(f) c + σ(i) tanh(g); h' = σ(o) tanh(c').
void plan_lstm_cell(Recovery& r, NodeIndex sum) {
  const GraphView& g = r.graph;
  const auto of_hidden = product_at(g, g.input(sum, 0)), of_input = product_at(g, g.input(sum, 1));
  const auto gates = of_hidden && of_input ? parts_of(g, g.output(sum)) : std::vector<ValueId>{};
  if (gates.size() != 4) return;
  const ValueId i = applied(g, "Sigmoid", gates[0]), f = applied(g, "Sigmoid", gates[1]),
                t = applied(g, "Tanh", gates[2]), o = applied(g, "Sigmoid", gates[3]);
  const NodeIndex fresh = joined(g, "Mul", i, t), old = f.valid() ? g.only_reader(f) : no_node;
  if (fresh == no_node || !g.is(old, "Mul") || !o.valid()) return;
  const NodeIndex cell = joined(g, "Add", g.output(old), g.output(fresh));
  const NodeIndex hidden = joined(g, "Mul", o, applied(g, "Tanh", output_of(g, cell)));
  if (cell == no_node || hidden == no_node) return;
  const ValueId c = g.other_input(old, f), x = of_input->x, h = of_hidden->x;
  r.claim({hidden, {x, h, c}, [&r, x, h, c, input = of_input->node, state = of_hidden->node, cell, hidden] {
             Args args{r.tensor(x), Slots{r.tensor(h), r.tensor(c)}};
             for (Arg& weight : weights_of(r, input, state)) args.push_back(std::move(weight));
             r.emit_many("aten::lstm_cell", std::move(args), {r.graph.output(hidden), r.graph.output(cell)});
           }});
  r.claim({cell, {g.output(hidden)}, [] {}});
}

/// linear(x) and linear(h), both split into r, z, n: n = tanh(n_x + r n_h); h' = (h - n) z + n.
void plan_gru_cell(Recovery& r, NodeIndex difference) {
  const GraphView& g = r.graph;
  const ValueId h = g.input(difference, 0), n = g.input(difference, 1);
  const NodeIndex candidate = g.is(g.producer(n), "Tanh") ? g.producer(g.input(g.producer(n), 0)) : no_node;
  const NodeIndex scaled = g.only_reader(g.output(difference));
  if (!g.is(candidate, "Add") || !g.is(scaled, "Mul")) return;
  const NodeIndex last = joined(g, "Add", g.output(scaled), n);
  const NodeIndex reset = g.producer(g.input(candidate, 1));
  if (last == no_node || !g.is(reset, "Mul")) return;
  for (const NodeIndex product : g.readers(h)) {
    if (!g.is(product, "Gemm")) continue;
    const auto of_hidden = product_at(g, g.output(product));
    const auto hidden = of_hidden ? parts_of(g, g.output(product)) : std::vector<ValueId>{};
    if (hidden.size() != 3 || !g.reads(reset, hidden[2])) continue;
    const ValueId part = g.input(candidate, 0);
    NodeIndex split = g.producer(part);
    if (g.is(split, "SequenceAt")) split = g.producer(g.input(split, 0));
    const auto of_input = split == no_node ? std::nullopt : product_at(g, g.input(split, 0));
    const auto input = of_input ? parts_of(g, g.input(split, 0)) : std::vector<ValueId>{};
    if (input.size() != 3 || input[2] != part) continue;
    const ValueId x = of_input->x;
    r.claim({last, {x, h}, [&r, x, h, input_node = of_input->node, product, last] {
               Args args{r.tensor(x), r.tensor(h)};
               for (Arg& weight : weights_of(r, input_node, product)) args.push_back(std::move(weight));
               r.emit("aten::gru_cell", std::move(args), r.graph.output(last));
             }});
    return;
  }
}

/// tanh(linear(h) + linear(x)), or relu, of nn.RNNCell: told from what people write so by the names of its weights.
void plan_simple_cell(Recovery& r, NodeIndex activation) {
  const GraphView& g = r.graph;
  const NodeIndex sum = g.producer(g.input(activation, 0));
  if (!g.is(sum, "Add")) return;
  const auto of_hidden = product_at(g, g.input(sum, 0)), of_input = product_at(g, g.input(sum, 1));
  if (!of_hidden || !of_input || !g.name(g.input(of_hidden->node, 1)).ends_with("weight_hh") ||
      !g.name(g.input(of_input->node, 1)).ends_with("weight_ih"))
    return;
  const ValueId x = of_input->x, h = of_hidden->x;
  const bool tanh = g.is(activation, "Tanh");
  r.claim({activation, {x, h}, [&r, x, h, tanh, input = of_input->node, state = of_hidden->node, activation] {
             Args args{r.tensor(x), r.tensor(h)};
             for (Arg& weight : weights_of(r, input, state)) args.push_back(std::move(weight));
             r.emit(tanh ? "aten::rnn_tanh_cell" : "aten::rnn_relu_cell", std::move(args), r.graph.output(activation));
           }});
}

}  // namespace

void plan_recurrent_cells(Recovery& r) {
  for (std::size_t i = 0; i < r.graph.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (r.graph.is(n, "Add") && r.graph.is(r.graph.producer(r.graph.input(n, 0)), "Gemm"))
      plan_lstm_cell(r, n);
    else if (r.graph.is(n, "Sub") && r.graph.is(r.graph.producer(r.graph.input(n, 1)), "Tanh"))
      plan_gru_cell(r, n);
    else if (r.graph.is(n, "Tanh") || r.graph.is(n, "Relu"))
      plan_simple_cell(r, n);
  }
}

}  // namespace headroom::recovery
