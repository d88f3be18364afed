#include "estimator/plan/checkpoint/call_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "estimator/base/text.h"
#include "estimator/plan/checkpoint/kernel_time.h"

namespace headroom {
namespace {

double elements(std::span<const std::int64_t> dims) {
  double n = 1;
  for (const auto size : dims) n *= static_cast<double>(size);
  return n;
}
double elements(const CostTensor& t) { return elements(std::span<const std::int64_t>(t.dims.data(), t.dims.size())); }
double element_size(const CostTensor& t) { return static_cast<double>(bits_of(t.dtype)) / 8; }
double bytes(const CostTensor& t) { return elements(t) * element_size(t); }

double bytes(std::span<const CostTensor> tensors) {
  double sum = 0;
  for (const CostTensor& t : tensors) sum += bytes(t);
  return sum;
}

double last(const CostTensor& t) { return t.dims.empty() ? 1 : static_cast<double>(t.dims.back()); }
double from_end(const CostTensor& t, std::size_t i) {
  return t.dims.size() < i ? 1 : static_cast<double>(t.dims[t.dims.size() - i]);
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Products of all sizes that the equation names.
double einsum_flops(std::string_view equation, std::span<const CostTensor> inputs) {
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

/// Kernels that only move: how many of each direction, and what they read and write at which rate, bytes a second.
struct Moving {
  double kernels = 1, bytes = 0, rate = memory_rate;
  double backward_kernels = 1, backward_bytes = 0, backward_rate = memory_rate;
};

class Cost {
 public:
  Cost(const CostedCall& call, CostMode mode) : call_(call), mode_(mode), in_(call.inputs) {
    std::string_view op = call.op;
    if (op.starts_with("aten::")) op.remove_prefix(6);
    name_ = op.substr(0, op.find('.'));
    if (name_.ends_with('_')) name_.remove_suffix(1);
    for (const CostTensor& t : in_) any_grad_ = any_grad_ || t.needs_grad;
  }

  CallCost answer() {
    if (call_.outputs.empty()) return {};
    if (!call_.view) moved_ = bytes(in_) + bytes(call_.outputs);
    if (!heavy()) moving();
    // No call of a step that anyone runs takes a quarter of an hour; sums of them stay in 64 bits.
    const auto picoseconds = [](double seconds) { return static_cast<std::int64_t>(std::min(seconds, 1e3) * 1e12); };
    return {flops_, moved_, picoseconds(time_.forward + beside_), picoseconds(beside_), picoseconds(time_.backward)};
  }

 private:
  const CostTensor& out() const { return call_.outputs[0]; }
  double result() const { return elements(out()); }
  int needs(std::size_t i) const { return i < in_.size() && in_[i].needs_grad ? 1 : 0; }

  /// Products, convolutions, attention: what autocast casts is cast before, and its gradients after.
  bool heavy() {
    const std::size_t first = is_one_of(name_, {"addmm", "baddbmm", "addbmm", "addmv"}) ? 1 : 0;
    if (first == 1 || is_one_of(name_, {"linear", "matmul", "mm", "bmm", "mv", "dot"})) {
      if (in_.size() < first + 2) return false;
      product(first);
    } else if (is_one_of(name_, {"conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d",
                                 "conv_transpose3d"})) {
      if (in_.size() < 2 || in_[0].dims.size() < 2 || in_[1].dims.size() < 2) return false;
      convolution();
    } else if (name_ == "scaled_dot_product_attention") {
      if (in_.size() < 3 || in_[0].dims.size() < 2 || in_[1].dims.size() < 2) return false;
      attention();
    } else if (name_ == "einsum") {
      flat_product(einsum_flops(call_.equation, in_), gradients());
    } else if (is_one_of(name_, {"lstm", "gru", "rnn_tanh", "rnn_relu"}) && !in_.empty()) {
      double flops = 0;
      for (const CostTensor& t : in_.subspan(1))
        if (t.dims.size() == 2) flops += 2 * elements(in_[0]) / std::max(1.0, last(in_[0])) * elements(t);
      flat_product(flops, 2);
    } else {
      return false;
    }
    if (mode_.autocast == DType::undefined) return true;
    double cast = 0;
    for (const CostTensor& t : in_)
      if (t.dtype == DType::f32) cast += elements(t) * (4 + 2);
    beside_ += cast / memory_rate;
    if (any_grad_) time_.backward += cast / memory_rate;
    return true;
  }

  bool half() const { return is_half(mode_.autocast) || is_half(out().dtype); }

  void product(std::size_t first) {
    const CostTensor &a = in_[first], &b = in_[first + 1];
    const bool one_weight = name_ == "linear" || b.dims.size() <= 2;
    ProductKernels k{.columns = std::max(last(out()), 1.0),
                     .depth = last(a),
                     .half = half(),
                     .tf32 = mode_.tf32,
                     .gradients = needs(first) + needs(first + 1)};
    const double rows = result() / k.columns;
    k.rows = one_weight ? rows : std::max(from_end(out(), 2), 1.0);
    k.batch = rows / std::max(k.rows, 1.0);
    flops_ = k.flops();
    time_ += k.time();
    const double size = half() ? 2 : 4;
    double copied = 0;  // operands that are brought into order first
    if (!one_weight)
      for (const CostTensor* t : {&a, &b}) copied += t->contiguous ? 0 : 2 * elements(*t) * size;
    else if (name_ == "linear" && !a.contiguous)
      copied = 2 * (elements(a) + result()) * size;
    beside_ += copied / memory_rate;
    if (name_ == "linear" && in_.size() > 2 && k.gradients > 0)
      time_.backward += launch_seconds + result() * size / 2.2e12;  // the bias' sum
  }

  /// Of which only the operations are known.
  void flat_product(double flops, double gradients) {
    flops_ = flops;
    const double rate = half() ? 400e12 : mode_.tf32 ? 200e12 : 45e12;
    time_ += {launch_seconds + flops / rate, gradients * (launch_seconds + flops / rate)};
  }

  void convolution() {
    const CostTensor &input = in_[0], &weight = in_[1];
    const bool transposed = name_.starts_with("conv_transpose");
    const std::span<const std::int64_t> dims(weight.dims.data(), weight.dims.size());
    const int gradients = needs(0) + needs(1);
    if (dims[1] == 1 && !transposed && input.dims[1] > 1) {
      const DepthwiseKernels k{.output = result(),
                               .window = elements(dims.subspan(2)),
                               .channels_last = !input.contiguous,
                               .half = half(),
                               .gradients = gradients};
      flops_ = k.flops();
      time_ += k.time();
      return;
    }
    const ConvolutionKernels k{.input = elements(input),
                               .output = result(),
                               .weights_per_output = elements(dims.subspan(1)),
                               .window = elements(dims.subspan(2)),
                               .in_channels = static_cast<double>(input.dims[1]),
                               .out_channels = static_cast<double>(out().dims.size() > 1 ? out().dims[1] : 1),
                               .transposed = transposed,
                               .channels_last = !input.contiguous,
                               .half = half(),
                               .gradients = gradients};
    flops_ = k.flops();
    time_ += k.time();
  }

  void attention() {
    const CostTensor &query = in_[0], &key = in_[1], &value = in_[2];
    const double queries = std::max(from_end(query, 2), 1.0), width = std::max(last(query), 1.0);
    const AttentionKernels k{.heads = elements(query) / queries / width,
                             .key_heads = elements(key) / std::max(from_end(key, 2), 1.0) / width,
                             .queries = queries,
                             .keys = std::max(from_end(key, 2), 1.0),
                             .width = width,
                             .value_width = last(value),
                             .causal = call_.causal,
                             .dropout = call_.dropout,
                             .half = half(),
                             .needs_grad = needs(0) + needs(1) + needs(2) > 0};
    flops_ = k.flops();
    time_ += k.time();
  }

  void moving() {
    const Moving m = call_.view ? of_view() : of_kernels();
    if (m.bytes > 0) time_.forward = m.kernels * launch_seconds + m.bytes / m.rate;
    if (any_grad_ && m.backward_bytes > 0)
      time_.backward = m.backward_kernels * launch_seconds + m.backward_bytes / m.backward_rate;
  }

  /// A view is free, but the gradient of what it leaves out is made and added.
  Moving of_view() const {
    const double whole = bytes(in_[0]), part = bytes(call_.outputs);
    if (name_ == "select") return {.backward_bytes = 2 * whole + 2 * part};
    if (is_one_of(name_, {"slice", "narrow"})) return {.backward_bytes = 3 * whole + 2 * part};
    if (is_one_of(name_, {"split", "split_with_sizes", "chunk", "unbind", "unsafe_chunk", "unsafe_split"}))
      return {.backward_bytes = 8 * elements(in_[0]), .backward_rate = 2e12};
    if (name_ == "expand" && part > whole) return {.backward_bytes = part};
    return {};
  }

  Moving of_kernels() const {
    if (in_.empty()) return {.bytes = moved_};
    const double n = result(), size = element_size(out()), made = n * size;
    if (name_.find("batch_norm") != std::string_view::npos) return batch_norm();
    if (is_one_of(name_, {"layer_norm", "native_layer_norm", "group_norm", "rms_norm", "instance_norm"}))
      return row_norm();
    if (is_one_of(name_, {"softmax", "log_softmax"}))
      return {.bytes = widened() + 2 * made, .backward_bytes = widened() + 3 * made};
    if (is_one_of(name_, {"contiguous", "clone", "reshape", "flatten", "cat", "stack"}))
      return {.bytes = 2 * bytes(call_.outputs), .rate = 2.7e12};
    if (name_ == "roll")  // element by element
      return {.kernels = 2,
              .bytes = 16 * n,
              .rate = 1.65e12,
              .backward_kernels = 2,
              .backward_bytes = 16 * n,
              .backward_rate = 1.65e12};
    if (is_one_of(name_, {"add", "sub"}))
      return {.bytes = moved_, .rate = 3.8e12, .backward_bytes = broadcast() * made, .backward_rate = 2.5e12};
    if (is_one_of(name_, {"mul", "div"}) && in_.size() > 1)
      return {.bytes = moved_,
              .rate = size < 4 ? 2.5e12 : memory_rate,
              .backward_kernels = gradients(),
              .backward_bytes = 3 * gradients() * made + 1.5 * broadcast() * made,
              .backward_rate = size < 4 ? 3.5e12 : 4.2e12};
    if (name_ == "cross_entropy_loss")  // log_softmax of the logits, and a gradient that is filled first
      return {.kernels = 3, .bytes = 2 * bytes(in_[0]), .backward_kernels = 3, .backward_bytes = 4 * bytes(in_[0])};
    if (name_ == "dropout") return {.bytes = 2 * made + n, .backward_bytes = 2 * made + n};
    if (name_.find("max_pool") != std::string_view::npos) {
      const double seen = 4 * (elements(in_[0]) + 3 * n);  // the places that won have 8 bytes
      return {.bytes = seen, .rate = 1.55e12, .backward_bytes = seen, .backward_rate = 0.62e12};
    }
    if (is_one_of(name_, {"mean", "sum", "adaptive_avg_pool2d", "avg_pool2d", "amax", "amin"}))
      return {.bytes = moved_, .rate = 2.7e12, .backward_bytes = moved_};
    if (name_ == "pow") return {.bytes = moved_, .backward_bytes = 8 * made};  // powers and products of their own
    if (name_ == "embedding") return {.bytes = 2 * made, .backward_kernels = 5, .backward_bytes = 2 * made};
    if (is_one_of(name_, {"to", "_to_copy"}))
      return {.bytes = moved_, .backward_bytes = moved_, .backward_rate = 2.4e12};
    if (name_ == "hardtanh" && call_.op.ends_with('_'))  // copies what it overwrites: its gradient needs that
      return {.kernels = 2, .bytes = 2 * moved_, .rate = 4.1e12, .backward_bytes = 3 * made, .backward_rate = 4.1e12};
    return {.bytes = moved_, .rate = 4.1e12, .backward_bytes = 1.5 * moved_, .backward_rate = 4.1e12};
  }

  double gradients() const {
    return static_cast<double>(std::ranges::count_if(in_, [](const CostTensor& t) { return t.needs_grad; }));
  }
  /// Operands that need a gradient and were smaller than the result: a sum each.
  double broadcast() const {
    return static_cast<double>(
        std::ranges::count_if(in_, [&](const CostTensor& t) { return t.needs_grad && elements(t) < result(); }));
  }
  /// Autocast brings operands of some calls to float32.
  double widened() const { return is_half(in_[0].dtype) && out().dtype == DType::f32 ? elements(in_[0]) * (2 + 4) : 0; }

  /// One block of threads a channel (aten/src/ATen/native/cuda/Normalization.cuh).
  Moving batch_norm() const {
    const double channels = in_[0].dims.size() < 2 ? 132 : static_cast<double>(in_[0].dims[1]);
    const double occupied = std::clamp(channels / 132, 1.0 / 132, 1.0);
    const double seen = bytes(in_[0]) + bytes(out());
    const bool native = is_half(in_[0].dtype) || is_half(out().dtype);
    return {.bytes = seen,
            .rate = (native ? 0.52e12 : 2.0e12) * occupied,
            .backward_bytes = 2 * seen,
            .backward_rate = (native ? 0.66e12 : 1.65e12) * occupied};
  }

  /// Layer norm's forward has 128 threads a row that take 4 elements each at a time
  /// (aten/src/ATen/native/cuda/layer_norm_kernel.cu).
  Moving row_norm() const {
    const double seen = 2 * bytes(out());
    double occupied = 0.7, backward_occupied = 0.7, ordered = 0;
    if (name_.ends_with("layer_norm")) {
      occupied = last(in_[0]) / (512 * std::max(1.0, std::ceil(last(in_[0]) / 512)));
      backward_occupied = std::max(occupied, 0.8);
      if (!in_[0].contiguous) ordered = 2 * bytes(in_[0]);
    }
    const double before = (ordered + widened()) / memory_rate;  // seconds, as bytes at each direction's rate
    const double rate = 2.6e12 * std::max(occupied, 1e-3), backward_rate = 1.5e12 * backward_occupied;
    return {.bytes = seen + before * rate,
            .rate = rate,
            .backward_kernels = 3,
            .backward_bytes = 2 * seen + before * backward_rate,
            .backward_rate = backward_rate};
  }

  const CostedCall& call_;
  const CostMode mode_;
  const std::span<const CostTensor> in_;
  std::string_view name_;  ///< without overload, and without the underscore of in-place forms
  bool any_grad_ = false;
  double flops_ = 0, moved_ = 0;
  KernelTime time_;
  double beside_ = 0;  ///< casts and copies in front of the operator
};

}  // namespace

CallCost& CallCost::operator+=(const CallCost& o) {
  flops += o.flops;
  bytes += o.bytes;
  forward_work += o.forward_work;
  beside_work += o.beside_work;
  backward_work += o.backward_work;
  return *this;
}

CallCost cost_of(const CostedCall& call, CostMode mode) { return Cost(call, mode).answer(); }

}  // namespace headroom
