// Quantise and dequantise nodes: the float model that they imitate.
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

void say(Recovery& r) {
  if (r.quantized_said) return;
  r.quantized_said = true;
  r.diagnose("quantized-as-float", r.options.training ? Severity::warning : Severity::info,
             "the file is quantised: what is counted is the floating-point model it was made from");
}

void quantize(Recovery& r) {
  say(r);
  r.alias(r.out(), r.in(0));
}

void dequantize(Recovery& r) {
  say(r);
  const ValueId x = r.in(0);
  if (r.graph.is_stored(x)) {
    r.define(r.out(), r.parameters.dequantized(x));
  } else {
    r.alias(r.out(), x);
  }
}

constexpr std::array list{
    OperatorHandler{"QuantizeLinear", quantize},
    OperatorHandler{"DequantizeLinear", dequantize},
};

}  // namespace

OperatorFamily quantized_operators() { return list; }

}  // namespace headroom::recovery
