// Fourier transforms and windows.
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

DType output_type(const NodeShaper& op) {
  const std::int64_t code = op.node().integer("output_datatype", 1);
  op.require(known_dtype(code), "the type " + std::to_string(code) + " is no ONNX type");
  return static_cast<DType>(code);
}

/// DFT: the axis by attribute in opset 17, by input from 20.
void dft(const NodeShaper& op) {
  Dims result = op.dims(0);
  op.require(result.size() >= 2, "the input has no signal dimension");
  const std::int64_t axis_number =
      op.has(2) ? op.needed_integer(2, "the axis") : op.node().integer("axis", op.opset() < 20 ? 1 : -2);
  const std::size_t axis = op.axis(axis_number, result.size());
  const bool onesided = op.node().integer("onesided", 0) != 0, inverse = op.node().integer("inverse", 0) != 0;
  std::int64_t length = onesided && inverse ? checked_mul(2, result[axis] - 1) : result[axis];
  if (op.has(1)) length = op.needed_integer(1, "the length");
  result[axis] = onesided && !inverse ? length / 2 + 1 : length;
  result.back() = onesided && inverse ? 1 : 2;
  op.set(0, op.dtype(0), std::move(result));
}

/// STFT(signal [B, L, 1 or 2] or [B, L], frame_step, window, frame_length) -> [B, frames, bins, 2].
void stft(const NodeShaper& op) {
  const Dims& signal = op.dims(0);
  op.require(signal.size() >= 2, "the signal has no batch and length");
  const std::int64_t step = op.needed_integer(1, "the frame step");
  const std::int64_t length = op.has(3)   ? op.needed_integer(3, "the frame length")
                              : op.has(2) ? op.dims_of_rank(2, 1)[0]
                                          : signal[1];
  op.require(step > 0, "the frame step is not positive");
  op.require(length > 0 && length <= signal[1], "the frame does not fit the signal");
  const bool onesided = op.node().integer("onesided", 1) != 0;
  op.set(0, op.dtype(0), {signal[0], (signal[1] - length) / step + 1, onesided ? length / 2 + 1 : length, 2});
}

void window(const NodeShaper& op) { op.set(0, output_type(op), {op.needed_integer(0, "the size")}); }

void mel_weight_matrix(const NodeShaper& op) {
  const std::int64_t bins = op.needed_integer(0, "the number of bands");
  op.set(0, output_type(op), {op.needed_integer(1, "the length") / 2 + 1, bins});
}

constexpr OperatorRule rules[] = {
    {"DFT", dft},
    {"STFT", stft},
    {"HannWindow", window},
    {"HammingWindow", window},
    {"BlackmanWindow", window},
    {"MelWeightMatrix", mel_weight_matrix},
};

}  // namespace

std::span<const OperatorRule> signal_rules() { return rules; }

}  // namespace headroom
