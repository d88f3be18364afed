// Recurrent networks in cuDNN (aten/src/ATen/native/RNN.cpp, cudnn/RNN.cpp). The sizes that only cuDNN knows (workspace
// and reserve) are formulas read off 408 networks measured on an H200 with cuDNN 9.19 (tests/truth/cudnn): LSTM,
// GRU and tanh, one to three layers, one and two directions. 400 are exact, the others within 64 bytes.
#include <algorithm>

#include "estimator/shadow/kernels/spatial.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operator.h"
#include "estimator/shadow/shadow.h"

namespace headroom::shadow {
namespace {

/// cudnnRNNMode_t.
enum class Mode : std::int64_t { relu = 0, tanh = 1, lstm = 2, gru = 3 };

std::int64_t gates_of(Mode mode) { return mode == Mode::lstm ? 4 : mode == Mode::gru ? 3 : 1; }

struct Network {
  Mode mode = Mode::lstm;
  DType dtype = DType::f32;
  std::int64_t time = 0, batch = 0, input = 0, hidden = 0, layers = 1, directions = 1;
  bool drops = false;  ///< dropout between layers, in training

  std::int64_t state() const { return checked_mul(batch, hidden); }
  std::int64_t steps() const { return checked_mul(time, state()); }
  /// Elements of all weight matrices.
  std::int64_t matrices() const {
    const std::int64_t rows = checked_mul(gates_of(mode), hidden);
    std::int64_t n = checked_mul(rows, input + hidden);
    n = checked_add(n, checked_mul(checked_mul(rows, hidden * (directions + 1)), layers - 1));
    return checked_mul(n, directions);
  }

  /// get_algo: small networks keep their weights on the chip; bfloat16 never does.
  bool persistent(bool forward) const {
    if (dtype == DType::bf16 || dtype == DType::f64) return false;
    const bool simple = mode == Mode::relu || mode == Mode::tanh;
    if (hidden <= (simple ? (forward ? 384 : 256) : (forward ? 192 : 128))) return true;
    return dtype == DType::f16 && mode == Mode::lstm && layers == 1 && directions == 1 && hidden <= 1024 &&
           hidden % 128 == 0 && input % 128 == 0;
  }
};

/// A number of hidden states: `steps` times T*B*H and `states` times B*H elements.
struct States {
  std::int64_t steps = 0;
  std::int64_t states = 0;
};

/// What inference keeps in the workspace.
States inference_states(const Network& n, bool persistent) {
  const bool both = n.directions == 2;
  const std::int64_t l = n.layers;
  if (persistent) {
    const std::int64_t one = n.mode == Mode::lstm ? 22 : n.mode == Mode::gru ? 17 : 7;
    const std::int64_t two = n.mode == Mode::lstm ? 31 : n.mode == Mode::gru ? 25 : 13;
    if (both) return {two, (n.mode == Mode::lstm ? 18 : 10) * l};
    return {one, (n.mode == Mode::lstm ? 8 : 4) * l};
  }
  if (both)
    return {n.mode == Mode::lstm  ? 15
            : n.mode == Mode::gru ? 13
                                  : 9,
            (n.mode == Mode::lstm  ? 24
             : n.mode == Mode::gru ? 14
                                   : 10) *
                l};
  return {n.mode == Mode::lstm  ? 6
          : n.mode == Mode::gru ? 5
                                : 3,
          (n.mode == Mode::lstm  ? 10
           : n.mode == Mode::gru ? 5
                                 : 3) *
              l};
}

/// How much more the backward pass needs; cuDNN reports the larger of both in training.
States backward_states(const Network& n, bool persistent) {
  const std::int64_t l = n.layers;
  const bool both = n.directions == 2;
  if (persistent) {
    if (n.mode == Mode::lstm) return {};
    if (n.mode == Mode::gru) return both ? States{2 * l - 1, 4 * l} : States{2 + l, 2 * l};
    return both ? States{6 + 2 * l, 4 * l} : States{7 + l, 2 * l};
  }
  if (both) {
    if (n.mode == Mode::lstm) return {};
    return n.mode == Mode::gru ? States{l > 1 ? 1 : 0, 0} : States{1 + 2 * l, 4 * l};
  }
  // Layers run in waves along time; two of them need less than a whole sequence between them.
  constexpr std::int64_t wave = 128, wave_states = 8, waves_of_three = 32;
  const std::int64_t waves = std::max<std::int64_t>(2, (3 * n.time + wave - 1) / wave);
  const States between = l == 1 ? States{0, 0} : l == 2 ? States{-1, wave_states * waves} : States{0, waves_of_three};
  if (n.mode == Mode::lstm) return {between.steps, between.states + l};
  if (n.mode == Mode::gru) return {between.steps + 1, between.states};
  return {between.steps + 3, between.states + 2 * l};
}

Bytes bytes_of_states(const Network& n, const States& s) {
  const std::int64_t elements = checked_add(checked_mul(s.steps, n.steps()), checked_mul(s.states, n.state()));
  return bytes_of(n.dtype, std::max<std::int64_t>(elements, 0));
}

/// cudnnGetRNNTempSpaceSizes: workspace.
Bytes workspace_of(const Network& n, bool training, bool forward) {
  const bool persistent = n.persistent(forward);
  const States inference = inference_states(n, persistent);
  // A wider input takes its own place beside the hidden states.
  const std::int64_t wider = checked_mul(checked_mul(n.time, n.batch), n.input - n.hidden);
  Bytes bytes = bytes_of_states(n, inference) + bytes_of(n.dtype, n.matrices()) +
                Bytes(8 * MiB) * (n.layers * n.directions) + Bytes(256) + Bytes(8) * n.batch;
  bytes += wider >= 0 ? bytes_of(n.dtype, wider) : Bytes(0) - bytes_of(n.dtype, -wider);
  if (!training) return bytes;
  const Bytes dropped = n.drops ? bytes_of_states(n, {n.layers - 1, 0}) : Bytes(0);
  Bytes more = bytes_of_states(n, backward_states(n, persistent));
  if (wider > 0 && !(persistent && n.mode == Mode::lstm)) more += bytes_of(n.dtype, wider);
  return bytes + std::max(dropped, more);
}

/// cudnnGetRNNTempSpaceSizes: reserve. Gates of all layers, outputs between layers, dropout masks of a bit an element.
Bytes reserve_of(const Network& n) {
  const std::int64_t kept = n.mode == Mode::lstm ? 5 : n.mode == Mode::gru ? 6 : 1;
  const std::int64_t sequences = n.directions * (kept * n.layers + n.layers - 1);
  Bytes bytes = bytes_of_states(n, {sequences, 0}) + Bytes(256);
  if (n.drops) {
    const Bytes mask((checked_mul(n.steps(), n.directions) + 7) / 8);
    bytes += mask.rounded_up(32) * (n.layers - 1);
  }
  return bytes;
}

// ---- kernels -------------------------------------------------------------------------------------------------------

// aten::_cudnn_rnn(input, weight[], weight_stride0, weight_buf?, hx, cx?, mode, hidden_size, proj_size, num_layers,
//                  batch_first, dropout, train, bidirectional, batch_sizes[], dropout_state?)
Network network(const Tensor& input, Mode mode, std::int64_t hidden, std::int64_t layers, bool batch_first,
                double dropout, bool train, bool both) {
  Network n;
  n.mode = mode;
  n.dtype = input->dtype;
  n.time = input->sizes[batch_first ? 1 : 0];
  n.batch = input->sizes[batch_first ? 0 : 1];
  n.input = input->sizes[2];
  n.hidden = hidden;
  n.layers = layers;
  n.directions = both ? 2 : 1;
  n.drops = train && dropout > 0 && layers > 1;
  return n;
}

std::int64_t count_of(const ValueList& tensors) {
  std::int64_t count = 0;
  for (const Value& t : tensors) count = checked_add(count, t.tensor()->count());
  return count;
}

/// Sequences lie time first in cuDNN.
Tensor time_first(Shadow& m, const Tensor& t, bool batch_first) { return batch_first ? transposed(m, t, 0, 1) : t; }

Outputs cudnn_rnn(Shadow& m, Args a) {
  const bool batch_first = a.boolean(10), train = a.boolean(12);
  const Tensor &hx = a.tensor(4), &cx = a.tensor(5);
  const Network n = network(a.tensor(0), static_cast<Mode>(a.integer(6)), a.integer(7), a.integer(9), batch_first,
                            a.real(11), train, a.boolean(13));
  const Tensor x = m.contiguous(time_first(m, a.tensor(0), batch_first));
  Tensor out = m.empty({n.time, n.batch, hx->sizes[2] * n.directions}, n.dtype);
  Tensor hy = m.empty(hx->sizes, n.dtype);
  Tensor cy = cx ? m.empty(cx->sizes, n.dtype) : m.empty({0}, n.dtype);
  // flatten_parameters() does nothing for bfloat16, so its weights are gathered at every call.
  Tensor weight_buf = a.tensor(3);
  if (!weight_buf && n.dtype == DType::bf16) weight_buf = m.empty({count_of(a.list(1))}, n.dtype);
  Tensor reserve;
  {
    const auto workspace = m.workspace(workspace_of(n, train, true));
    reserve = m.empty({train ? reserve_of(n).count() : 0}, DType::u8);
  }
  if (batch_first) out = transposed(m, out, 0, 1);
  return {std::move(out), std::move(hy), std::move(cy), std::move(reserve), std::move(weight_buf)};
}

// aten::_cudnn_rnn_backward(input, weight[], weight_stride0, weight_buf, hx, cx?, output, grad_output?, grad_hy?,
//   grad_cy?, mode, hidden_size, proj_size, num_layers, batch_first, dropout, train, bidirectional, batch_sizes[],
//   dropout_state?, reserve, output_mask) -> (input, hx, cx, weight[])
Outputs cudnn_rnn_backward(Shadow& m, Args a) {
  const bool batch_first = a.boolean(14);
  const Tensor &input = a.tensor(0), &hx = a.tensor(4), &cx = a.tensor(5), &output = a.tensor(6);
  const ValueList& weights = a.list(1);
  Outputs none{Value(), Value(), Value(), Value(ValueList(weights.size()))};
  if (!a.given(7) && !a.given(8) && !a.given(9)) return none;
  const Network n = network(input, static_cast<Mode>(a.integer(10)), a.integer(11), a.integer(13), batch_first,
                            a.real(15), true, a.boolean(17));
  const Bytes workspace = workspace_of(n, true, false);
  const Tensor grad_output = a.given(7) ? a.tensor(7) : m.empty_like(output);
  const Tensor grad_hy = a.given(8) ? a.tensor(8) : m.empty_like(hx);
  const Tensor grad_cy = !cx ? Tensor() : a.given(9) ? a.tensor(9) : m.empty_like(cx);
  Tensor grad_input, grad_hx, grad_cx;
  {
    const Tensor x = m.contiguous(time_first(m, input, batch_first));
    const Tensor dy = m.contiguous(time_first(m, grad_output, batch_first));
    grad_input = m.empty({n.time, n.batch, n.input}, n.dtype);
    grad_hx = m.empty(hx->sizes, n.dtype);
    if (cx) grad_cx = m.empty(cx->sizes, n.dtype);
    m.workspace(workspace);
  }
  if (batch_first) grad_input = transposed(m, grad_input, 0, 1);
  ValueList grad_weights(weights.size());
  if (wanted(a[21], 3)) {
    const Tensor x = m.contiguous(time_first(m, input, batch_first));
    const Tensor flat = m.empty({count_of(weights)}, n.dtype);
    m.workspace(workspace);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const Dims& sizes = weights[i].tensor()->sizes;
      grad_weights[i] = m.alias(flat, sizes, contiguous_strides(sizes), offset);
      offset += element_count(sizes);
    }
  }
  // What nobody needs is made all the same and dropped by the engine.
  return {std::move(grad_input), std::move(grad_hx), std::move(grad_cx), std::move(grad_weights)};
}

// aten::_cudnn_rnn_flatten_weight(weight[], weight_stride0, input_size, mode, hidden_size, proj_size, num_layers,
//   batch_first, bidirectional) -> Tensor. The weights become views of the buffer that it returns
//   (copy_weights_to_flat_buf_views in ATen/native/cudnn/RNN.cpp, with set_orig_weights_to_flat_buf).
Outputs flatten_weight(Shadow& m, Args a) {
  const Tensor flat = m.empty({count_of(a.list(0))}, a.list(0)[0].tensor()->dtype);
  m.recorder().name(*flat->storage, a.list(0)[0].tensor()->label);
  std::int64_t offset = 0;
  for (const Value& w : a.list(0)) {
    TensorImpl& weight = *w.tensor();
    weight.storage = flat->storage;
    weight.strides = contiguous_strides(weight.sizes);
    weight.offset = offset;
    offset += weight.count();
  }
  return {flat};
}

// ---- above autograd ------------------------------------------------------------------------------------------------

/// A weight's cast into its place of the flat buffer that autocast makes for cuDNN; backwards it is a cast again.
class CastIntoFlat final : public Node {
 public:
  CastIntoFlat(Shadow& m, const Tensor& weight, DType flat) : weight_dtype_(weight->dtype) {
    sequence = m.next_sequence();
    next.push_back(gradient_edge(m, weight));
    inputs.push_back({weight->sizes, flat});
  }
  std::string_view name() const override { return "aten::_cudnn_rnn_flatten_weight"; }
  Gradients apply(Shadow& m, const Gradients& grads) override {
    return {grads[0] ? m.empty(grads[0]->sizes, weight_dtype_) : Tensor()};
  }

 private:
  DType weight_dtype_;
};

/// copy_weights_to_flat_buf_views: views of one low-precision buffer.
ValueList flattened(Shadow& m, const ValueList& weights, DType dtype, Tensor& flat) {
  flat = m.empty({count_of(weights)}, dtype);
  ValueList views;
  std::int64_t offset = 0;
  for (const Value& w : weights) {
    const Tensor& weight = w.tensor();
    Tensor view = m.alias(flat, weight->sizes, contiguous_strides(weight->sizes), offset);
    offset += weight->count();
    if (m.grad_enabled() && needs_grad(weight)) view->grad_fn = Ref<Node>(new CastIntoFlat(m, weight, dtype));
    views.emplace_back(std::move(view));
  }
  return views;
}

/// _cudnn_impl, with the reflattening wrapper of autocast (_cudnn_rnn_cast_reflatten).
Outputs run(Shadow& m, const Value& input, const Value& hx, const Value& cx, const Value& params, bool biases,
            Mode mode, const Value& layers, const Value& dropout, const Value& train, const Value& both,
            const Value& batch_first) {
  const std::int64_t hidden = (cx.none() ? hx : cx).tensor()->sizes[2];
  const auto call = [&](const Value& x, const Value& weights, const Value& flat, const Value& h, const Value& c) {
    return m.all("aten::_cudnn_rnn", x, weights, biases ? 4 : 2, flat, h, c, static_cast<std::int64_t>(mode), hidden, 0,
                 layers, batch_first, dropout, train, both, Dims{}, Value());
  };
  if (train.boolean() && dropout.real() > 0) m.use_dropout_state();
  // The wrapper casts to float16 under bfloat16 autocast too (ATen/cudnn/AutocastRNN.cpp).
  const DType low = DType::f16;
  if (m.autocast_dtype() == DType::undefined || params.list()[0].tensor()->dtype != DType::f32)
    return call(input, params, Value(), hx, cx);
  Tensor flat;
  const ValueList weights = flattened(m, params.list(), low, flat);
  const auto cast = [&](const Value& v) {
    return v.none() || v.tensor()->dtype == low ? v : Value(m.one("aten::to.dtype", v, low));
  };
  const Value c = cast(cx), h = cast(hx), x = cast(input);
  return call(x, weights, flat, h, c);
}

// aten::lstm.input(input, hx[], params[], has_biases, num_layers, dropout, train, bidirectional, batch_first)
Outputs lstm(Shadow& m, Args a) {
  Outputs out = run(m, a[0], a.list(1)[0], a.list(1)[1], a[2], a.boolean(3), Mode::lstm, a[4], a[5], a[6], a[7], a[8]);
  return {out[0], out[1], out[2]};
}

// aten::{gru,rnn_tanh,rnn_relu}.input(input, hx, params[], has_biases, num_layers, dropout, train, bidirectional,
//                                     batch_first)
template <Mode mode>
Outputs simple(Shadow& m, Args a) {
  Outputs out = run(m, a[0], a[1], Value(), a[2], a.boolean(3), mode, a[4], a[5], a[6], a[7], a[8]);
  return {out[0], out[1]};
}

// ---- cells (RNN.cpp, cuda/RNN.cu): on the GPU one kernel after two products

// aten::lstm_cell(input, hx[], w_ih, w_hh, b_ih, b_hh)
Outputs lstm_cell(Shadow& m, Args a) {
  const Tensor from_input = m.one("aten::matmul", a[0], m.one("aten::t", a[2]));
  const Tensor from_hidden = m.one("aten::matmul", a.list(1)[0], m.one("aten::t", a[3]));
  Outputs out = m.all("aten::_thnn_fused_lstm_cell", from_input, from_hidden, a.list(1)[1], a[4], a[5]);
  return {out[0], out[1]};
}

// aten::gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh)
Outputs gru_cell(Shadow& m, Args a) {
  const Tensor from_input = m.one("aten::matmul", a[0], m.one("aten::t", a[2]));
  const Tensor from_hidden = m.one("aten::matmul", a[1], m.one("aten::t", a[3]));
  return {m.all("aten::_thnn_fused_gru_cell", from_input, from_hidden, a[1], a[4], a[5])[0]};
}

// aten::rnn_{tanh,relu}_cell(input, hx, w_ih, w_hh, b_ih, b_hh)
Outputs simple_cell(Shadow& m, Args a, const char* activation) {
  const Tensor hidden = m.one("aten::linear", a[1], a[3], a[5]);
  const Tensor input = m.one("aten::linear", a[0], a[2], a[4]);
  return {m.one(activation, m.one("aten::add_.Tensor", hidden, input))};
}
Outputs tanh_cell(Shadow& m, Args a) { return simple_cell(m, a, "aten::tanh"); }
Outputs relu_cell(Shadow& m, Args a) { return simple_cell(m, a, "aten::relu"); }

// aten::_thnn_fused_lstm_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias): hy, cy and the gates
Outputs fused_lstm_cell(Shadow& m, Args a) {
  const Tensor &gates = a.tensor(0), &cx = a.tensor(2);
  Tensor workspace = m.empty(gates->sizes, gates->dtype);
  Tensor hy = m.empty(cx->sizes, cx->dtype);
  return {hy, m.empty(cx->sizes, cx->dtype), workspace};
}

// aten::_thnn_fused_lstm_cell_backward_impl(grad_hy, grad_cy, cx, cy, workspace, has_bias): one gradient for the gates
// of input and hidden state, one for both biases
Outputs fused_lstm_cell_backward(Shadow& m, Args a) {
  const Tensor &cx = a.tensor(2), &workspace = a.tensor(4);
  const Tensor gates = m.empty(workspace->sizes, workspace->dtype), grad_cx = m.empty(cx->sizes, cx->dtype);
  Value bias;
  if (a.boolean(5)) bias = m.one("aten::sum.dim_IntList", gates, Dims{0}, false);
  return {gates, grad_cx, bias};
}

// aten::_thnn_fused_gru_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias): hy, and five of its size
Outputs fused_gru_cell(Shadow& m, Args a) {
  const Tensor& hx = a.tensor(2);
  Tensor workspace = m.empty({hx->sizes[0], checked_mul(hx->sizes[1], 5)}, hx->dtype);
  return {m.empty(hx->sizes, hx->dtype), workspace};
}

// aten::_thnn_fused_gru_cell_backward(grad_hy, workspace, has_bias)
Outputs fused_gru_cell_backward(Shadow& m, Args a) {
  const Tensor &grad = a.tensor(0), &workspace = a.tensor(1);
  const Dims gates{workspace->sizes[0], workspace->sizes[1] / 5 * 3};
  const Tensor of_input = m.empty(gates, workspace->dtype), of_hidden = m.empty(gates, workspace->dtype);
  const Tensor grad_hx = m.empty(grad->sizes, grad->dtype);
  if (!a.boolean(2)) return {of_input, of_hidden, grad_hx, Value(), Value()};
  const Tensor input_bias = m.one("aten::sum.dim_IntList", of_input, Dims{0}, false);
  return {of_input, of_hidden, grad_hx, input_bias, m.one("aten::sum.dim_IntList", of_hidden, Dims{0}, false)};
}

using Kind = Operator::Kind;
constexpr Operator operators[] = {
    {"aten::lstm_cell", Kind::composite, lstm_cell},
    {"aten::gru_cell", Kind::composite, gru_cell},
    {"aten::rnn_tanh_cell", Kind::composite, tanh_cell},
    {"aten::rnn_relu_cell", Kind::composite, relu_cell},
    {"aten::_thnn_fused_lstm_cell", Kind::kernel, fused_lstm_cell},
    {"aten::_thnn_fused_lstm_cell_backward_impl", Kind::kernel, fused_lstm_cell_backward},
    {"aten::_thnn_fused_gru_cell", Kind::kernel, fused_gru_cell},
    {"aten::_thnn_fused_gru_cell_backward", Kind::kernel, fused_gru_cell_backward},
    {"aten::lstm.input", Kind::composite, lstm},
    {"aten::gru.input", Kind::composite, simple<Mode::gru>},
    {"aten::rnn_tanh.input", Kind::composite, simple<Mode::tanh>},
    {"aten::rnn_relu.input", Kind::composite, simple<Mode::relu>},
    {"aten::_cudnn_rnn", Kind::kernel, cudnn_rnn},
    {"aten::_cudnn_rnn_backward", Kind::kernel, cudnn_rnn_backward},
    {"aten::_cudnn_rnn_flatten_weight", Kind::kernel, flatten_weight},
};

}  // namespace

std::span<const Operator> recurrent_operators() { return operators; }

}  // namespace headroom::shadow
