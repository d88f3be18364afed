// Normalisations.
#include <array>

#include "estimator/recover/batch_norm.h"
#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

void batch_normalization(Recovery& r) {
  const auto affine = [&](std::size_t i) { return affine_is_none(r, r.node(), i) ? SlotId{} : r.tensor(i); };
  BatchNormOperands o{affine(1), affine(2), r.tensor(3), r.tensor(4)};
  o.momentum = 1.0 - r.onnx().real("momentum", 0.9);
  o.epsilon = r.onnx().real("epsilon", 1e-5);
  r.define(r.out(), call_batch_norm(r, r.tensor(0), o, std::string(r.graph.name(r.out()))));
}

Dims trailing_dims(Recovery& r) {
  const Dims& x = r.dims(r.in(0));
  std::int64_t axis = r.onnx().integer("axis", -1);
  if (axis < 0) axis += static_cast<std::int64_t>(x.size());
  return Dims(x.begin() + axis, x.end());
}

void layer_normalization(Recovery& r) {
  r.emit("aten::layer_norm",
         {r.tensor(0), trailing_dims(r), r.optional_tensor(1), r.optional_tensor(2), r.onnx().real("epsilon", 1e-5)});
}

void rms_normalization(Recovery& r) {
  r.emit("aten::rms_norm", {r.tensor(0), trailing_dims(r), r.optional_tensor(1), r.onnx().real("epsilon", 1e-5)});
}

void instance_normalization(Recovery& r) {
  r.emit("aten::instance_norm", {r.tensor(0), r.optional_tensor(1), r.optional_tensor(2), None{}, None{}, true, 0.1,
                                 r.onnx().real("epsilon", 1e-5), true});
}

void group_normalization(Recovery& r) {
  r.emit("aten::group_norm", {r.tensor(0), r.onnx().integer("num_groups", 1), r.optional_tensor(1),
                              r.optional_tensor(2), r.onnx().real("epsilon", 1e-5)});
}

/// F.local_response_norm is written in Python.
void local_response(Recovery& r) {
  const std::string name(r.graph.name(r.out()));
  const SlotId x = r.tensor(0);
  const std::int64_t size = r.onnx().integer("size", 1);
  const Dims& in = r.dims(r.in(0));
  const SlotId squares = r.call("aten::mul.Tensor", {x, x}, name + ".squares");
  const SlotId line = r.call("aten::unsqueeze", {squares, std::int64_t{1}}, name + ".line");
  Dims shape{in[0], 1, in[1], in.size() > 2 ? in[2] : 1, -1};
  const SlotId volume = r.call("aten::reshape", {line, shape}, name + ".volume");
  const SlotId padded =
      r.call("aten::constant_pad_nd", {volume, Dims{0, 0, 0, 0, size / 2, (size - 1) / 2}, 0.0}, name + ".padded");
  const SlotId mean = r.call("aten::avg_pool3d", {padded, Dims{size, 1, 1}, Dims{1}}, name + ".mean");
  const SlotId flat = r.call("aten::squeeze.dim", {mean, std::int64_t{1}}, name + ".flat");
  const SlotId back = r.call("aten::reshape", {flat, in}, name + ".back");
  const SlotId scaled = r.call("aten::mul.Tensor", {back, r.onnx().real("alpha", 1e-4)}, name + ".scaled");
  const SlotId shifted = r.call("aten::add.Tensor", {scaled, r.onnx().real("bias", 1.0)}, name + ".shifted");
  const SlotId power = r.call("aten::pow.Tensor_Scalar", {shifted, r.onnx().real("beta", 0.75)}, name + ".power");
  r.emit("aten::div.Tensor", {x, power});
}

void lp_normalization(Recovery& r) {
  const std::string name(r.graph.name(r.out()));
  const std::int64_t axis = r.onnx().integer("axis", -1);
  const SlotId norm =
      r.call("aten::linalg_vector_norm", {r.tensor(0), static_cast<double>(r.onnx().integer("p", 2)), Dims{axis}, true},
             name + ".norm");
  const SlotId bounded = r.call("aten::clamp_min", {norm, 1e-12}, name + ".bounded");
  const SlotId wide = r.call("aten::expand", {bounded, r.dims(r.in(0))}, name + ".wide");
  r.emit("aten::div.Tensor", {r.tensor(0), wide});
}

constexpr std::array list{
    OperatorHandler{"BatchNormalization", batch_normalization},
    OperatorHandler{"LayerNormalization", layer_normalization},
    OperatorHandler{"RMSNormalization", rms_normalization},
    OperatorHandler{"SimplifiedLayerNormalization", rms_normalization},
    OperatorHandler{"InstanceNormalization", instance_normalization},
    OperatorHandler{"GroupNormalization", group_normalization},
    OperatorHandler{"LRN", local_response},
    OperatorHandler{"LpNormalization", lp_normalization},
};

}  // namespace

OperatorFamily normalization_operators() { return list; }

}  // namespace headroom::recovery
