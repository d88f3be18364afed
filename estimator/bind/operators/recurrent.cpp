// Recurrent networks.
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

/// X [T, N, I] (layout 1: [N, T, I]), W [D, gates * H, I], R [D, gates * H, H] -> Y [T, D, N, H], Y_h [D, N, H], Y_c
/// for LSTM (layout 1: [N, T, D, H] and [N, D, H]).
void recurrent(const NodeShaper& op, std::int64_t gates, std::size_t outputs) {
  const Dims &x = op.dims_of_rank(0, 3), &w = op.dims_of_rank(1, 3), &r = op.dims_of_rank(2, 3);
  const std::int64_t hidden = op.node().integer("hidden_size", r[2]);
  op.require(hidden >= 0 && hidden == r[2] && w[1] == checked_mul(gates, hidden) && r[1] == w[1] && r[0] == w[0],
             "the weights do not have " + std::to_string(gates) + " gates of hidden_size " + std::to_string(hidden));
  op.same_size(x[2], w[2], "the input sizes of X and W");
  const bool batch_first = op.node().integer("layout", 0) != 0;
  const std::int64_t steps = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1], directions = w[0];
  op.set(0, op.dtype(0), batch_first ? Dims{batch, steps, directions, hidden} : Dims{steps, directions, batch, hidden});
  const Dims state = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  for (std::size_t i = 1; i < outputs; ++i) op.set(i, op.dtype(0), state);
}

void rnn(const NodeShaper& op) { recurrent(op, 1, 2); }
void gru(const NodeShaper& op) { recurrent(op, 3, 2); }
void lstm(const NodeShaper& op) { recurrent(op, 4, 3); }

constexpr OperatorRule rules[] = {{"RNN", rnn}, {"GRU", gru}, {"LSTM", lstm}};

}  // namespace

std::span<const OperatorRule> recurrent_rules() { return rules; }

}  // namespace headroom
