#include "estimator/plan/checkpoint/call_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "estimator/base/text.h"

namespace headroom {
namespace {

/// Operations, or bytes, a second.
struct Rates {
  double forward, backward;
};

struct Speed {
  KernelClass kernels;
  Rates single, half;
};

// Medians of tests/truth/rates/h200.json, of what only moves bytes those of the largest shape: smaller ones' backward
// took no longer there than asking for it.
constexpr std::array operation_speeds{
    Speed{KernelClass::product, {48e12, 47e12}, {609e12, 426e12}},
    Speed{KernelClass::convolution, {129e12, 89e12}, {186e12, 167e12}},
    Speed{KernelClass::depthwise, {1.9e12, 1.1e12}, {1.9e12, 1.1e12}},
    Speed{KernelClass::wide_depthwise, {2.9e12, 1.6e12}, {2.8e12, 1.5e12}},
    Speed{KernelClass::depthwise_last, {5.8e12, 2.8e12}, {8.0e12, 3.8e12}},
    Speed{KernelClass::wide_depthwise_last, {4.8e12, 0.67e12}, {11e12, 5.7e12}},
    Speed{KernelClass::attention, {36e12, 36e12}, {184e12, 114e12}},
};
constexpr std::array byte_speeds{
    Speed{KernelClass::normalization, {2.8e12, 2.4e12}, {2.3e12, 2.2e12}},
    Speed{KernelClass::batch_norm, {2.0e12, 2.2e12}, {0.6e12, 0.9e12}},
    Speed{KernelClass::copy, {1.1e12, 1.1e12}, {0.6e12, 0.6e12}},
};
constexpr Rates moving{4.1e12, 4.1e12};
constexpr double launch = static_cast<double>(rerun_work);

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

/// Input channels of one group of a convolution.
std::int64_t window_channels(const CostTensor& weight) { return weight.dims.size() < 2 ? 0 : weight.dims[1]; }

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

template <std::size_t n>
Rates rates_of(const std::array<Speed, n>& speeds, KernelClass kernels, bool half, Rates otherwise) {
  const auto found = std::find_if(speeds.begin(), speeds.end(), [&](const Speed& s) { return s.kernels == kernels; });
  return found == speeds.end() ? otherwise : half ? found->half : found->single;
}

std::int64_t work(const CallCost& c, double flops, double bytes, double occupied, double Rates::*direction) {
  if (flops == 0 && bytes == 0) return 0;
  const KernelClass kernels =
      c.tf32 && !c.half && c.kernels == KernelClass::product ? KernelClass::convolution : c.kernels;
  const double operations = rates_of(operation_speeds, kernels, c.half, moving).*direction;
  const double moved = rates_of(byte_speeds, kernels, c.half, moving).*direction;
  return static_cast<std::int64_t>(std::max({flops / operations * 1e12, bytes / moved / occupied * 1e12, launch}));
}

KernelClass kernels_of_convolution(const CostTensor& input, const CostTensor& weight) {
  if (window_channels(weight) != 1) return KernelClass::convolution;
  const bool wide = window(weight) >= 25;
  if (input.contiguous) return wide ? KernelClass::wide_depthwise : KernelClass::depthwise;
  return wide ? KernelClass::wide_depthwise_last : KernelClass::depthwise_last;
}

bool in_different_orders(std::span<const CostTensor> inputs) {
  return std::ranges::any_of(
      inputs, [&](const CostTensor& t) { return t.dims == inputs[0].dims && t.contiguous != inputs[0].contiguous; });
}

/// Of batch norm: its kernels have one block a channel (aten/src/ATen/native/cuda/Normalization.cuh), on 132
/// multiprocessors.
double channels_occupy(const CostTensor& input) {
  return input.dims.size() < 2 ? 1 : std::clamp(static_cast<double>(input.dims[1]) / 132, 1.0 / 132, 1.0);
}

/// Of layer norm's forward: 128 threads a row that take 4 elements each at a time
/// (aten/src/ATen/native/cuda/layer_norm_kernel.cu).
double row_occupies(const CostTensor& input) {
  const double rounds = std::max(1.0, std::ceil(last(input) / 512));
  return std::max(last(input), 1.0) / (512 * rounds);
}

KernelClass class_of_moving(std::string_view base) {
  constexpr auto norms = std::to_array<std::string_view>({"layer_norm", "native_layer_norm", "group_norm", "rms_norm",
                                                          "instance_norm", "softmax", "log_softmax", "dropout"});
  constexpr auto copies = std::to_array<std::string_view>({"contiguous", "clone", "reshape", "flatten", "cat", "roll"});
  if (base.find("batch_norm") != std::string_view::npos) return KernelClass::batch_norm;
  if (is_one_of(base, norms)) return KernelClass::normalization;
  return is_one_of(base, copies) ? KernelClass::copy : KernelClass::elementwise;
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
                 std::string_view equation, bool moves, CostMode mode) {
  CallCost c;
  c.tf32 = mode.tf32;
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
  c.kernels = class_of_moving(base);
  if (is_one_of(base, products) && inputs.size() >= 2) {
    c.kernels = KernelClass::product;
    c.flops = 2 * out * last(inputs[0]);
    operands = needs(0) + needs(1);
  } else if (is_one_of(base, sums) && inputs.size() >= 3) {
    c.kernels = KernelClass::product;
    c.flops = 2 * out * last(inputs[1]);
    operands = needs(1) + needs(2);
  } else if (is_one_of(base, convolutions) && inputs.size() >= 2) {
    c.kernels = kernels_of_convolution(inputs[0], inputs[1]);
    c.flops = 2 * out * window(inputs[1]);
    operands = needs(0) + needs(1);
  } else if (is_one_of(base, transposed) && inputs.size() >= 2) {
    c.kernels = KernelClass::convolution;
    c.flops = 2 * elements(inputs[0].dims) * window(inputs[1]);
    operands = needs(0) + needs(1);
  } else if (base == "scaled_dot_product_attention") {
    c.kernels = KernelClass::attention;
    c.flops = attention(inputs);
    // Five products where the forward pass has two, as flop_counter.py's sdpa_backward_flop_count has it.
    of_gradient = 2.5;
    operands = std::max({needs(0), needs(1), needs(2)});
  } else if (base == "einsum") {
    c.kernels = KernelClass::product;
    c.flops = einsum(equation, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) operands += needs(i);
  } else if (is_one_of(base, recurrent) && !inputs.empty()) {
    c.kernels = KernelClass::product;
    const double steps = elements(inputs[0].dims) / std::max(1.0, last(inputs[0]));
    for (const CostTensor& t : inputs.subspan(1))
      if (t.dims.size() == 2) c.flops += 2 * steps * elements(t.dims);
    operands = 2;
  }
  if (c.kernels == KernelClass::batch_norm && !inputs.empty()) {
    c.occupied = c.backward_occupied = channels_occupy(inputs[0]);
  } else if (base == "layer_norm" && !inputs.empty()) {
    c.occupied = row_occupies(inputs[0]);
    c.backward_occupied = std::max(c.occupied, 0.5);  // measured: half at 96 elements
  }
  if (c.kernels == KernelClass::elementwise && in_different_orders(inputs)) c.kernels = KernelClass::copy;
  bool any = false;
  for (const CostTensor& t : inputs) any = any || t.needs_grad;
  if (moves) c.bytes = bytes(inputs) + bytes(outputs);
  c.backward_flops = c.flops * of_gradient * operands;
  c.backward_bytes = any ? 2 * c.bytes : 0;
  c.half = (c.flops > 0 && is_half(mode.autocast)) || (!outputs.empty() && is_half(outputs[0].dtype));
  return c;
}

std::int64_t forward_work(const CallCost& c) { return work(c, c.flops, c.bytes, c.occupied, &Rates::forward); }

std::int64_t backward_work(const CallCost& c) {
  return work(c, c.backward_flops, c.backward_bytes, c.backward_occupied, &Rates::backward);
}

}  // namespace headroom
