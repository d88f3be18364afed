#include "estimator/step/recurrent_weights.h"

#include <algorithm>
#include <string_view>

namespace headroom {
namespace {

/// torch/backends/cudnn/rnn.py, get_cudnn_mode; -1: no recurrent network.
std::int64_t cudnn_mode(std::string_view op) {
  return op == "aten::rnn_relu.input"   ? 0
         : op == "aten::rnn_tanh.input" ? 1
         : op == "aten::lstm.input"     ? 2
         : op == "aten::gru.input"      ? 3
                                        : -1;
}

const Parameter* parameter_of(const Program& program, SlotId slot) {
  const auto found = std::find_if(program.parameters.begin(), program.parameters.end(),
                                  [&](const Parameter& p) { return p.slot == slot; });
  return found == program.parameters.end() ? nullptr : &*found;
}

}  // namespace

RecurrentWeights::RecurrentWeights(const Program& program) {
  for (const Call& c : program.calls) {
    const std::int64_t mode = cudnn_mode(program.name_of(c.op));
    if (mode < 0) continue;
    // input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
    const Slots& weights = std::get<Slots>(c.args.at(2));
    const bool known = std::all_of(weights.begin(), weights.end(), [&](SlotId s) {
      return parameter_of(program, s) != nullptr && !module_of_.contains(s);
    });
    if (!known || weights.size() < 2) continue;
    const Dims &of_input = parameter_of(program, weights[0])->dims, &of_state = parameter_of(program, weights[1])->dims;
    const bool biases = std::get<bool>(c.args.at(3));
    for (const SlotId s : weights) module_of_[s] = modules_.size();
    modules_.push_back({weights.size(),
                        0,
                        {weights, std::int64_t{biases ? 4 : 2}, of_input.at(1), mode, of_state.at(1), std::int64_t{0},
                         c.args.at(4), c.args.at(8), c.args.at(7)}});
  }
}

void RecurrentWeights::made(Machine& machine, SlotId slot, DType dtype) {
  const auto found = module_of_.find(slot);
  if (found == module_of_.end() || dtype == DType::bf16) return;
  Module& m = modules_[found->second];
  if (++m.seen % m.weights != 0) return;
  machine.purpose(Category::weights);
  machine.call("aten::_cudnn_rnn_flatten_weight", m.arguments, {}, {ModuleId{}, {}});
}

}  // namespace headroom
