#include "estimator/plan/checkpoint/call_cost.h"

#include <algorithm>
#include <array>
#include <map>

#include "estimator/base/text.h"

namespace headroom {
namespace {

constexpr double float_rate = 67e12, half_rate = 989e12, byte_rate = 4.8e12;

double elements(const Dims& d) {
  double n = 1;
  for (const auto size : d) n *= static_cast<double>(size);
  return n;
}

double bytes(std::span<const CostTensor> tensors) {
  double sum = 0;
  for (const CostTensor& t : tensors) sum += elements(t.dims) * static_cast<double>(bits_of(t.dtype)) / 8;
  return sum;
}

/// Elements that one element of a convolution's result is a sum of: the weight's, but for its first axis.
double window(const CostTensor& weight) {
  return weight.dims.empty() ? 0 : elements(weight.dims) / std::max(1.0, static_cast<double>(weight.dims[0]));
}

double last(const CostTensor& t) { return t.dims.empty() ? 1 : static_cast<double>(t.dims.back()); }

/// Products of all sizes that the equation names.
double einsum(std::string_view equation, std::span<const CostTensor> inputs) {
  std::map<char, double> sizes;
  std::size_t i = 0;
  for (const auto operand : split(equation.substr(0, equation.find("->")), ',')) {
    std::string letters;
    for (const char c : operand)
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) letters += c;
    if (i >= inputs.size() || letters.size() != inputs[i].dims.size()) return 0;
    for (std::size_t k = 0; k < letters.size(); ++k) sizes[letters[k]] = static_cast<double>(inputs[i].dims[k]);
    ++i;
  }
  double n = 2;
  for (const auto& [letter, size] : sizes) n *= size;
  return n;
}

bool is_one_of(std::string_view op, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

double attention(std::span<const CostTensor> in) {
  if (in.size() < 3 || in[0].dims.size() < 2 || in[1].dims.size() < 2) return 0;
  const double keys = static_cast<double>(in[1].dims[in[1].dims.size() - 2]);
  const double rows = elements(in[0].dims) / std::max(1.0, last(in[0]));
  return 2 * rows * keys * (last(in[0]) + last(in[2]));
}

double work(double flops, double moved, bool half) {
  return std::max(flops / (half ? half_rate : float_rate), moved / byte_rate) * 1e12;
}

}  // namespace

CallCost& CallCost::operator+=(const CallCost& o) {
  flops += o.flops;
  bytes += o.bytes;
  backward_flops += o.backward_flops;
  backward_bytes += o.backward_bytes;
  return *this;
}

CallCost cost_of(std::string_view op, std::span<const CostTensor> inputs, std::span<const CostTensor> outputs,
                 std::string_view equation, bool moves, DType compute) {
  CallCost c;
  if (op.starts_with("aten::")) op.remove_prefix(6);
  const std::string_view base = op.substr(0, op.find('.'));
  constexpr auto products = std::to_array<std::string_view>({"linear", "matmul", "mm", "bmm", "mv", "dot"});
  constexpr auto sums = std::to_array<std::string_view>({"addmm", "baddbmm", "addbmm", "addmv"});
  constexpr auto transposed =
      std::to_array<std::string_view>({"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"});
  constexpr auto convolutions = std::to_array<std::string_view>({"conv1d", "conv2d", "conv3d", "convolution"});
  constexpr auto recurrent = std::to_array<std::string_view>({"lstm", "gru", "rnn_tanh", "rnn_relu"});
  const double out = outputs.empty() ? 0 : elements(outputs[0].dims);
  double of_gradient = 1;  // of one operand, in units of the forward operations
  int operands = 0;        // that need a gradient
  const auto needs = [&](std::size_t i) { return i < inputs.size() && inputs[i].needs_grad ? 1 : 0; };
  if (is_one_of(base, products) && inputs.size() >= 2) {
    c.flops = 2 * out * last(inputs[0]);
    operands = needs(0) + needs(1);
  } else if (is_one_of(base, sums) && inputs.size() >= 3) {
    c.flops = 2 * out * last(inputs[1]);
    operands = needs(1) + needs(2);
  } else if (is_one_of(base, convolutions) && inputs.size() >= 2) {
    c.flops = 2 * out * window(inputs[1]);
    operands = needs(0) + needs(1);
  } else if (is_one_of(base, transposed) && inputs.size() >= 2) {
    c.flops = 2 * elements(inputs[0].dims) * window(inputs[1]);
    operands = needs(0) + needs(1);
  } else if (base == "scaled_dot_product_attention") {
    c.flops = attention(inputs);
    // Five products where the forward pass has two, as flop_counter.py's sdpa_backward_flop_count has it.
    of_gradient = 2.5;
    operands = std::max({needs(0), needs(1), needs(2)});
  } else if (base == "einsum") {
    c.flops = einsum(equation, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) operands += needs(i);
  } else if (is_one_of(base, recurrent) && !inputs.empty()) {
    const double steps = elements(inputs[0].dims) / std::max(1.0, last(inputs[0]));
    for (const CostTensor& t : inputs.subspan(1))
      if (t.dims.size() == 2) c.flops += 2 * steps * elements(t.dims);
    operands = 2;
  }
  bool any = false;
  for (const CostTensor& t : inputs) any = any || t.needs_grad;
  if (moves) c.bytes = bytes(inputs) + bytes(outputs);
  c.backward_flops = c.flops * of_gradient * operands;
  c.backward_bytes = any ? 2 * c.bytes : 0;
  c.half = c.flops > 0 && (is_half(compute) || (!outputs.empty() && is_half(outputs[0].dtype)));
  return c;
}

std::int64_t forward_work(const CallCost& c) { return static_cast<std::int64_t>(work(c.flops, c.bytes, c.half)); }

std::int64_t backward_work(const CallCost& c) {
  return static_cast<std::int64_t>(work(c.backward_flops, c.backward_bytes, c.half));
}

}  // namespace headroom
