#include "calibration/runner/recurrent_weights.h"

#include <algorithm>
#include <string_view>

namespace headroom::runner {
namespace {

/// torch/backends/cudnn/rnn.py, get_cudnn_mode.
std::int64_t cudnn_mode(std::string_view op) {
  return op == "aten::lstm.input" ? 2 : op == "aten::gru.input" ? 3 : op == "aten::rnn_tanh.input" ? 1 : 0;
}

}  // namespace

RecurrentWeights::RecurrentWeights(const Job& job) {
  const Program& p = *job.programs.front();
  for (const Call& c : p.calls) {
    const std::string& op = p.name_of(c.op);
    if (op != "aten::lstm.input" && op != "aten::gru.input" && op != "aten::rnn_tanh.input" &&
        op != "aten::rnn_relu.input")
      continue;
    // input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    const Slots& weights = std::get<Slots>(c.args.at(2));
    const bool biases = std::get<bool>(c.args.at(3));
    const auto dims = [&](SlotId s) { return std::ranges::find(p.parameters, s, &Parameter::slot)->dims; };
    modules_.push_back({weights,
                        {weights, std::int64_t{biases ? 4 : 2}, dims(weights.at(0)).at(1), cudnn_mode(op),
                         dims(weights.at(1)).at(1), std::int64_t{0}, c.args.at(4), c.args.at(8), c.args.at(7)}});
  }
}

void RecurrentWeights::made(SlotId slot, Dispatch& dispatch, const std::vector<c10::IValue>& slots) const {
  for (const Module& m : modules_)
    if (std::ranges::find(m.weights, slot) != m.weights.end() &&
        std::ranges::all_of(m.weights, [&](SlotId s) { return slots[s.at()].isTensor(); }))
      dispatch.call("aten::_cudnn_rnn_flatten_weight", m.arguments, slots);
}

}  // namespace headroom::runner
