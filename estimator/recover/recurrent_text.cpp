#include "estimator/recover/recurrent_text.h"

#include <algorithm>

namespace headroom::recovery {

namespace {

bool is_recurrent(std::string_view op) { return op == "LSTM" || op == "GRU" || op == "RNN"; }

struct Network {
  std::string op;            ///< "aten::lstm.input"
  std::int64_t gates, cell;  ///< rows of a weight; size of the hidden state
  std::int64_t columns;      ///< of the input
};

/// Weights and biases in the text's order, with the dims that nn.RNNBase gives them.
Slots parameters_of(Recovery& r, const FxCall& c, const Network& n) {
  const std::vector<FxArg>& names = c.fx().args[2].items;
  const bool biases = c.integer(3, 1) != 0, both = c.integer(7, 0) != 0;
  const std::size_t each = biases ? 4 : 2, directions = both ? 2 : 1;
  Slots out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool first_layer = i < each * directions;
    const std::int64_t inner = first_layer ? n.columns : n.cell * static_cast<std::int64_t>(directions);
    const Dims dims = i % each == 0 ? Dims{n.gates, inner} : i % each == 1 ? Dims{n.gates, n.cell} : Dims{n.gates};
    out.push_back(r.named_parameter(names[i].text, dims, DType::f32));
  }
  return out;
}

/// Which result of the network a value of its group is: 0 the sequence, 1 the hidden state, 2 the cell state.
std::optional<std::size_t> result_index(const GraphView& g, ValueId v) {
  while (v.valid() && g.producer(v) != no_node && !is_recurrent(g.producer_op(v))) v = g.input(g.producer(v), 0);
  return v.valid() && is_recurrent(g.producer_op(v)) ? std::optional(g.output_index(v)) : std::nullopt;
}

}  // namespace

bool claim_recurrent(Recovery& r, const FxCall& call) {
  const std::string_view target = call.target();
  const bool lstm = target == "aten.lstm.input";
  if (!lstm && target != "aten.gru.input" && target != "aten.rnn_tanh.input" && target != "aten.rnn_relu.input")
    return false;
  const GraphView& g = r.graph;
  const FxNode& fx = call.fx();
  const NodeIndex layer = call.find({"LSTM", "GRU", "RNN"});
  const ValueId input = call.value_of_arg(0);
  if (layer == no_node || !input.valid() || fx.args.size() < 9 || !fx.args[2].is(FxArg::Kind::list)) return false;

  // What is read outside the group: the sequence, the states.
  const FxGroup* group = &call.group();
  std::vector<ValueId> results(lstm ? 3 : 2);
  std::vector<NodeIndex> makers;
  for (const NodeIndex n : group->nodes) {
    const ValueId v = g.output(n);
    const auto readers = g.readers(v);
    const bool leaves = g.is_output(v) || std::any_of(readers.begin(), readers.end(), [&](NodeIndex reader) {
                          return r.origins.group_of(reader) != group;
                        });
    if (!leaves) continue;
    const auto i = result_index(g, v);
    if (!i || *i >= results.size()) return false;
    results[*i] = v;
    makers.push_back(n);
  }
  if (makers.empty()) return false;

  std::vector<ValueId> reads{input};
  const bool one_state = fx.args[1].is_reference();
  std::vector<ValueId> states;
  for (const FxArg& a : one_state ? std::vector<FxArg>{fx.args[1]} : fx.args[1].items)
    states.push_back(call.value(a.text));
  // Of two states of zeros the optimiser leaves one.
  const auto known = std::find_if(states.begin(), states.end(), [](ValueId v) { return v.valid(); });
  if (known == states.end()) return false;
  const ValueId merged = *known;
  reads.push_back(merged);
  reads.insert(reads.end(), states.begin(), states.end());

  const std::int64_t hidden = g.node(layer).integer("hidden_size", 1);
  const std::int64_t gates = hidden * (lstm ? 4 : g.is(layer, "GRU") ? 3 : 1);
  const Network network{"aten::" + std::string(target.substr(5)), gates, hidden, g.dims(input).back()};
  for (const NodeIndex n : group->nodes) r.set_owned(n);
  r.claim({makers[0], reads, [&r, call, network, states, one_state, results, input, merged] {
             Slots held;
             for (const ValueId v : states)
               held.push_back(v.valid() ? r.tensor(v)
                                        : r.call("aten::zeros_like", {r.tensor(merged)},
                                                 std::string(r.graph.name(merged)) + ".again"));
             const SlotId x = r.tensor(input);
             Args args{x,
                       one_state ? Arg(held[0]) : Arg(held),
                       parameters_of(r, call, network),
                       call.integer(3, 1) != 0,
                       call.integer(4, 1),
                       call.real(5, 0),
                       r.options.training,
                       call.integer(7, 0) != 0,
                       call.integer(8, 0) != 0};
             // States that nobody reads are there all the same: "x, _ = self.lstm(x)".
             const std::string name(r.graph.name(r.out()));
             Slots made;
             for (std::size_t i = 0; i < results.size(); ++i)
               made.push_back(r.builder.slot(results[i].valid() ? std::string(r.graph.name(results[i]))
                                                                : name + ".state" + std::to_string(i)));
             r.list_call(network.op, std::move(args), made);
             r.call_origins().back().all_named = true;
             for (std::size_t i = 0; i < results.size(); ++i)
               if (results[i].valid()) r.define(results[i], made[i]);
           }});
  for (std::size_t i = 1; i < makers.size(); ++i) r.claim({makers[i], {g.output(makers[0])}, [] {}});
  return true;
}

}  // namespace headroom::recovery
