// Activations, softmax, dropout, clamp.
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

template <const char* Op>
void plain(Recovery& r) {
  r.emit(Op, {r.tensor(0)});
}
constexpr char relu_op[] = "aten::relu";
constexpr char sigmoid_op[] = "aten::sigmoid";
constexpr char tanh_op[] = "aten::tanh";
constexpr char hardswish_op[] = "aten::hardswish";
constexpr char hardsigmoid_op[] = "aten::hardsigmoid";
constexpr char mish_op[] = "aten::mish";
constexpr char selu_op[] = "aten::selu";
constexpr char softplus_op[] = "aten::softplus";

void leaky_relu(Recovery& r) { r.emit("aten::leaky_relu", {r.tensor(0), r.onnx().real("alpha", 0.01)}); }
void elu(Recovery& r) { r.emit("aten::elu", {r.tensor(0), r.onnx().real("alpha", 1.0)}); }
void celu(Recovery& r) { r.emit("aten::celu", {r.tensor(0), r.onnx().real("alpha", 1.0)}); }
void threshold(Recovery& r) { r.emit("aten::threshold", {r.tensor(0), r.onnx().real("alpha", 1.0), 0.0}); }

void swish(Recovery& r) {
  if (r.onnx().real("alpha", 1.0) == 1.0) return (void)r.emit("aten::silu", {r.tensor(0)});
  const std::string name(r.graph.name(r.out()));
  const SlotId scaled = r.call("aten::mul.Tensor", {r.tensor(0), r.onnx().real("alpha", 1.0)}, name + ".scaled");
  const SlotId gate = r.call("aten::sigmoid", {scaled}, name + ".gate");
  r.emit("aten::mul.Tensor", {r.tensor(0), gate});
}

void gelu(Recovery& r) { r.emit("aten::gelu", {r.tensor(0), Text{std::string(r.onnx().text("approximate", "none"))}}); }

void softsign(Recovery& r) {
  const std::string name(r.graph.name(r.out()));
  const SlotId magnitude = r.call("aten::abs", {r.tensor(0)}, name + ".abs");
  const SlotId denominator = r.call("aten::add.Tensor", {magnitude, std::int64_t{1}}, name + ".denominator");
  r.emit("aten::div.Tensor", {r.tensor(0), denominator});
}

void prelu(Recovery& r) {
  // The exporter unsqueezes the [C] parameter to broadcast it; an inference export stores it so.
  ValueId weight = r.in(1);
  for (NodeIndex p = r.graph.producer(weight); r.graph.is(p, "Unsqueeze") || r.graph.is(p, "Reshape");
       p = r.graph.producer(weight))
    weight = r.graph.input(p, 0);
  const SlotId slopes =
      r.graph.is_weight(weight) ? r.parameters.vector(weight, r.graph.value(weight).count()) : r.tensor(weight);
  r.emit("aten::prelu", {r.tensor(0), slopes});
}

std::int64_t softmax_axis(Recovery& r) { return r.onnx().integer("axis", r.graph.model().opset() >= 13 ? -1 : 1); }
void softmax(Recovery& r) { r.emit("aten::softmax.int", {r.tensor(0), softmax_axis(r)}); }
void log_softmax(Recovery& r) { r.emit("aten::log_softmax.int", {r.tensor(0), softmax_axis(r)}); }

void dropout(Recovery& r) {
  const double fallback = r.onnx().real("ratio", 0.5);
  const double p = r.has(1) ? r.graph.number(r.in(1)).value_or(fallback) : fallback;
  r.emit("aten::dropout", {r.tensor(0), p, r.options.training});
}

/// A bound as Python has it: a float one would make integers floats.
Arg bound(const Recovery& r, std::size_t i) {
  const auto number = r.has(i) ? r.graph.number(r.in(i)) : std::nullopt;
  if (!number) return None{};
  return is_integer(r.dtype(r.in(0))) ? Arg(static_cast<std::int64_t>(*number)) : Arg(*number);
}

void clip(Recovery& r) {
  const Node& n = r.onnx();
  const bool by_attribute = n.attribute("min") || n.attribute("max");
  const Arg least = by_attribute ? (n.attribute("min") ? Arg(n.real("min", 0)) : Arg(None{})) : bound(r, 1);
  const Arg most = by_attribute ? (n.attribute("max") ? Arg(n.real("max", 0)) : Arg(None{})) : bound(r, 2);
  const std::string_view made_by = r.graph.producer_op(r.in(0));
  const bool relu6 = std::holds_alternative<double>(least) && std::get<double>(least) == 0.0 &&
                     std::holds_alternative<double>(most) && std::get<double>(most) == 6.0;
  if (relu6 && (r.mode.conv_net || made_by == "Conv" || made_by == "BatchNormalization")) {
    r.emit("aten::hardtanh", {r.tensor(0), 0.0, 6.0});
  } else {
    r.emit("aten::clamp", {r.tensor(0), least, most});
  }
}

constexpr std::array list{
    OperatorHandler{"Relu", plain<relu_op>},
    OperatorHandler{"Sigmoid", plain<sigmoid_op>},
    OperatorHandler{"Tanh", plain<tanh_op>},
    OperatorHandler{"HardSwish", plain<hardswish_op>},
    OperatorHandler{"HardSigmoid", plain<hardsigmoid_op>},
    OperatorHandler{"Mish", plain<mish_op>},
    OperatorHandler{"Selu", plain<selu_op>},
    OperatorHandler{"Softplus", plain<softplus_op>},
    OperatorHandler{"LeakyRelu", leaky_relu},
    OperatorHandler{"Elu", elu},
    OperatorHandler{"Celu", celu},
    OperatorHandler{"ThresholdedRelu", threshold},
    OperatorHandler{"Swish", swish},
    OperatorHandler{"Gelu", gelu},
    OperatorHandler{"Softsign", softsign},
    OperatorHandler{"PRelu", prelu},
    OperatorHandler{"Softmax", softmax},
    OperatorHandler{"LogSoftmax", log_softmax},
    OperatorHandler{"Dropout", dropout},
    OperatorHandler{"Clip", clip},
};

}  // namespace

OperatorFamily activation_operators() { return list; }

}  // namespace headroom::recovery
