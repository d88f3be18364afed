// nn.LSTM, nn.GRU, nn.RNN: the exporter writes one node a layer, with its weights re-ordered and packed.
#include <algorithm>
#include <array>

#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

struct Stack {
  std::vector<NodeIndex> layers;  ///< first layer first
  ValueId input, result;
  Dims permutation;  ///< of the input, where the exporter merged the caller's with batch_first's; empty: none
  bool batch_first = false;
};

bool is_layout(std::string_view op) {
  return op == "Squeeze" || op == "Transpose" || op == "Reshape" || op == "Dropout";
}

/// The next layer of the same module that reads the output of `layer`; no_node at the top. `result` is where the
/// module's own rearranging ends.
NodeIndex next_layer(const Recovery& r, NodeIndex layer, ValueId& result, bool& turned) {
  const GraphView& g = r.graph;
  result = g.output(layer);
  turned = false;
  while (true) {
    NodeIndex n = no_node;
    for (const NodeIndex reader : g.readers(result)) {
      if (g.is(reader, "Shape")) continue;  // of the states that start the next layer
      if (n != no_node) return no_node;
      n = reader;
    }
    if (n == no_node || g.is_output(result) || !r.origins.same_scope(n, layer)) return no_node;
    if (g.op(n) == g.op(layer) && g.input(n, 0) == result) return n;
    if (!is_layout(g.op(n)) || g.input(n, 0) != result) return no_node;
    const auto perm = g.node(n).integers("perm");
    if (g.is(n, "Transpose") && perm.size() == 3 && perm[0] == 1 && perm[1] == 0) turned = true;
    result = g.output(n);
  }
}

/// The stored tensor that slices, concatenations and unsqueezes were made of: every part comes from it.
ValueId stored_source(const GraphView& g, ValueId v) {
  for (int steps = 0; steps < 6 && v.valid(); ++steps) {
    if (g.is_weight(v)) return v;
    const NodeIndex n = g.producer(v);
    if (!g.is(n, "Unsqueeze") && !g.is(n, "Concat") && !g.is(n, "Slice") && !g.is(n, "Reshape")) return {};
    v = g.input(n, 0);
  }
  return {};
}

/// Parameters of layer number `l`, named as nn.LSTM names them.
std::vector<SlotId> parameters_of(Recovery& r, NodeIndex n, std::size_t l, std::int64_t directions, SlotId& beside) {
  const GraphView& g = r.graph;
  const ValueId w = g.input(n, 1), hh = g.input(n, 2), b = g.input(n, 3);
  const Dims &wd = g.dims(w), &hd = g.dims(hh);
  const std::int64_t gates = wd[1];
  const std::string module = std::string(r.origins.module(n)) + (r.origins.module(n).empty() ? "" : ".");
  std::vector<SlotId> out;
  for (std::int64_t d = 0; d < directions; ++d) {
    const std::string tail = "_l" + std::to_string(l) + (d ? "_reverse" : "");
    const auto named = [&](const std::string& leaf, ValueId packed, Dims dims) {
      ValueId source = g.named(module + leaf + tail);
      if (!source.valid() && directions == 1) source = stored_source(g, packed);
      const bool of_module = source.valid() && !is_anonymous(g.name(source)) && g.dims(source) == dims;
      const SlotId s = of_module
                           ? r.parameters.stored(source)
                           : r.parameters.restored(module + leaf + tail, std::move(dims), DType::f32, false, beside);
      beside = s;
      out.push_back(s);
    };
    named("weight_ih", w, {gates, wd[2]});
    named("weight_hh", hh, {gates, hd[2]});
    if (!b.valid()) continue;
    // B packs the input's bias, then the hidden state's.
    const NodeIndex halves = [&] {
      NodeIndex p = g.producer(b);
      while (g.is(p, "Unsqueeze")) p = g.producer(g.input(p, 0));
      return p;
    }();
    const bool apart = g.is(halves, "Concat") && g.node(halves).inputs.size() == 2;
    named("bias_ih", apart ? g.input(halves, 0) : b, {gates});
    named("bias_hh", apart ? g.input(halves, 1) : b, {gates});
  }
  return out;
}

double dropout_between_layers(const Recovery& r) {
  // No exporter writes the dropout between layers; a model that drops elsewhere is taken to drop there as well.
  for (std::size_t i = 0; i < r.graph.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!r.graph.is(n, "Dropout")) continue;
    const auto p = r.graph.number(r.graph.input(n, 1));
    return p.value_or(r.graph.node(n).real("ratio", 0.5));
  }
  return 0;
}

bool starts_from_zeros(const GraphView& g, ValueId state) {
  for (int steps = 0; steps < 6 && state.valid(); ++steps) {
    const NodeIndex n = g.producer(state);
    if (g.is(n, "ConstantOfShape") || g.is(n, "Constant")) return true;
    if (!g.is(n, "Slice") && !g.is(n, "Expand") && !g.is(n, "Unsqueeze")) return g.initializer(state) != nullptr;
    state = g.input(n, 0);
  }
  return !state.valid();
}

void emit_stack(Recovery& r, const Stack& stack) {
  const GraphView& g = r.graph;
  const std::string_view kind = g.op(stack.layers[0]);
  const Node& first = g.node(stack.layers[0]);
  const std::int64_t hidden = first.integer("hidden_size", 1);
  const bool both = first.text("direction", "forward") == "bidirectional";
  const std::int64_t directions = both ? 2 : 1;
  const auto layers = static_cast<std::int64_t>(stack.layers.size());
  const Dims& x = r.dims(stack.input);
  const std::string name(g.name(stack.result));
  const std::int64_t batch = x[!stack.permutation.empty() ? static_cast<std::size_t>(stack.permutation[0])
                               : stack.batch_first        ? 0u
                                                          : 1u];
  const SlotId input = stack.permutation.empty()
                           ? r.tensor(stack.input)
                           : r.call("aten::permute", {r.tensor(stack.input), stack.permutation}, name + ".input");

  Slots parameters;
  SlotId beside;
  for (std::size_t l = 0; l < stack.layers.size(); ++l)
    for (const SlotId s : parameters_of(r, stack.layers[l], l, directions, beside)) parameters.push_back(s);

  const auto state = [&](std::size_t i, const std::string& called) {
    const ValueId given = g.input(stack.layers[0], i);
    const NodeIndex cut = g.producer(given);
    if (!starts_from_zeros(g, given)) return r.tensor(g.is(cut, "Slice") ? g.input(cut, 0) : given);
    return r.call("aten::zeros", {Dims{layers * directions, batch, hidden}, DTypeOf{input}}, name + called);
  };
  const SlotId h = state(5, ".h0");
  const bool has_biases = g.input(stack.layers[0], 3).valid();
  const double p = layers > 1 ? dropout_between_layers(r) : 0.0;
  if (p > 0 && r.options.training)
    r.diagnose("dropout-assumed", Severity::warning,
               "dropout between recurrent layers is in no export; taken as elsewhere in the model",
               bytes_of(DType::u8, (layers - 1) * g.value(stack.input).count()));
  Args tail{parameters, has_biases, layers, p, r.options.training, both, stack.batch_first};
  const NodeIndex last = stack.layers.back();
  const ValueId hidden_out = g.node(last).output(1), cell_out = g.node(last).output(2);
  Args args{input};
  std::vector<ValueId> results{stack.result, hidden_out};
  if (kind == "LSTM") {
    const SlotId c = state(6, ".c0");
    args.push_back(Slots{h, c});
    results.push_back(cell_out);
  } else {
    args.push_back(h);
  }
  args.insert(args.end(), tail.begin(), tail.end());
  const std::string_view op = kind == "LSTM"  ? "aten::lstm.input"
                              : kind == "GRU" ? "aten::gru.input"
                                              : "aten::rnn_tanh.input";
  // The states are there even where the file has no name for them; theirs are of all layers, the file's of the last.
  Slots made{r.builder.slot(name)};
  while (made.size() < results.size()) made.push_back(r.builder.slot(name + ".state" + std::to_string(made.size())));
  r.list_call(op, std::move(args), made);
  r.call_origins().back().all_named = true;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].valid()) r.define(results[i], made[i]);
}

/// At the first layer of a module: all of them, and the transposes that batch_first stands for.
void find_recurrent(Recovery& r, NodeIndex first) {
  const GraphView& g = r.graph;
  if (g.dims(g.input(first, 1)).size() != 3 || g.dims(g.input(first, 2)).size() != 3) return;
  Stack stack;
  stack.input = g.input(first, 0);
  const NodeIndex turn = g.producer(stack.input);
  const auto perm = turn == no_node ? std::span<const std::int64_t>{} : g.node(turn).integers("perm");
  const bool turned_in = g.is(turn, "Transpose") && perm.size() == 3 && r.origins.same_scope(turn, first);
  for (NodeIndex n = first; n != no_node;) {
    // A layer above an earlier one belongs to that one's stack.
    if (n == first)
      for (ValueId v = g.input(n, 0);;) {
        const NodeIndex below = g.producer(v);
        if (below == no_node || !r.origins.same_scope(below, first)) break;
        if (g.op(below) == g.op(first)) return;
        if (!is_layout(g.op(below))) break;
        v = g.input(below, 0);
      }
    stack.layers.push_back(n);
    bool turned = false;
    n = next_layer(r, n, stack.result, turned);
    if (n == no_node) stack.batch_first = turned_in && turned;
  }
  if (stack.batch_first) {
    stack.input = g.input(turn, 0);
    stack.permutation = {perm[1], perm[0], perm[2]};  // before batch_first's (1, 0, 2)
    if (std::ranges::is_sorted(stack.permutation)) stack.permutation.clear();
  }
  const NodeIndex last = g.producer(stack.result);
  for (const NodeIndex n : stack.layers) r.set_owned(n);
  r.claim({last, {stack.input}, [&r, stack] { emit_stack(r, stack); }});
}

constexpr std::array list{Pattern{"LSTM", find_recurrent}, Pattern{"GRU", find_recurrent},
                          Pattern{"RNN", find_recurrent}};

}  // namespace

PatternFamily recurrent_patterns() { return list; }

}  // namespace headroom::recovery
