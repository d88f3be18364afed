// Gather, scatter, embedding, one-hot, top-k, cumulative sums.
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

/// x[:, :, index]: None for the axes in front.
Slots index_list(std::size_t axis, std::initializer_list<SlotId> indices) {
  Slots list(axis);
  list.insert(list.end(), indices);
  return list;
}

/// nn.Embedding calls its table "weight"; another parameter is indexed in Python (a table of relative positions).
bool is_embedding(Recovery& r) {
  const std::string_view name = r.graph.name(r.in(0));
  return r.graph.is_weight(r.in(0), 2) &&
         (is_anonymous(name) || name.ends_with("weight") || name.find('.') == std::string_view::npos);
}

void gather(Recovery& r) {
  const Dims& data = r.dims(r.in(0));
  if (r.out_dims() == data && r.dims(r.in(1)).empty()) return r.alias(r.out(), r.in(0));  // keeps_all_logits
  std::int64_t axis = r.onnx().integer("axis", 0);
  if (axis < 0) axis += static_cast<std::int64_t>(data.size());
  const Arg index = r.operand(1);
  if (!std::holds_alternative<SlotId>(index) && r.dims(r.in(1)).empty()) {
    r.emit("aten::select.int", {r.tensor(0), axis, std::get<std::int64_t>(index)});
  } else if (is_embedding(r) && axis == 0) {
    r.emit("aten::embedding", {r.tensor(0), r.tensor(1)});
  } else if (r.dims(r.in(1)).size() == 1 && !r.graph.is_weight(r.in(0))) {
    r.emit("aten::index_select", {r.tensor(0), axis, r.tensor(1)});
  } else {
    r.emit("aten::index.Tensor", {r.tensor(0), index_list(static_cast<std::size_t>(axis), {r.tensor(1)})});
  }
}

void gather_elements(Recovery& r) { r.emit("aten::gather", {r.tensor(0), r.onnx().integer("axis", 0), r.tensor(1)}); }

/// The index tensors that a GatherND or ScatterND packed: the exporter concatenates them unsqueezed and expanded.
Slots unpacked_indices(Recovery& r, ValueId packed) {
  const NodeIndex concat = r.graph.producer(packed);
  Slots out;
  if (r.graph.is(concat, "Concat")) {
    for (ValueId part : r.graph.inputs(concat)) {
      NodeIndex p = r.graph.producer(part);
      if (!r.graph.is(p, "Unsqueeze")) return {};
      part = r.graph.input(p, 0);
      if (p = r.graph.producer(part); r.graph.is(p, "Expand")) part = r.graph.input(p, 0);
      out.push_back(r.tensor(part));
    }
    return out;
  }
  const Dims& d = r.dims(packed);
  if (d.empty()) return {};
  std::vector<SlotId> parts;
  for (std::int64_t i = 0; i < d.back(); ++i)
    out.push_back(r.call("aten::select.int", {r.tensor(packed), std::int64_t{-1}, i},
                         std::string(r.graph.name(packed)) + "." + std::to_string(i)));
  return out;
}

void gather_nd(Recovery& r) {
  const auto batch = static_cast<std::size_t>(r.onnx().integer("batch_dims", 0));
  Slots indices(batch);
  for (const SlotId s : unpacked_indices(r, r.in(1))) indices.push_back(s);
  r.emit("aten::index.Tensor", {r.tensor(0), indices});
}

void scatter_nd(Recovery& r) {
  const std::string_view reduction = r.onnx().text("reduction", "none");
  r.emit("aten::index_put", {r.tensor(0), unpacked_indices(r, r.in(1)), r.tensor(2), reduction == "add"});
}

void scatter_elements(Recovery& r) {
  const std::int64_t axis = r.onnx().integer("axis", 0);
  const std::string_view reduction = r.onnx().text("reduction", "none");
  // "x.scatter_(1, index, 1)": the TorchScript exporter expands the number.
  const NodeIndex expand = r.graph.producer(r.in(2));
  const auto number_of_all =
      r.graph.is(expand, "Expand") ? r.graph.number(r.graph.input(expand, 0)) : std::optional<double>{};
  const Arg source = number_of_all && !r.origins.has_text() ? Arg(*number_of_all) : r.operand(2);
  if (reduction == "add") {
    r.emit("aten::scatter_add", {r.tensor(0), axis, r.tensor(1), r.tensor(2)});
  } else if (reduction == "none") {
    const bool number = !std::holds_alternative<SlotId>(source);
    r.emit(number ? "aten::scatter.value" : "aten::scatter.src", {r.tensor(0), axis, r.tensor(1), source});
  } else {
    const std::string_view name = reduction == "max" ? "amax" : reduction == "min" ? "amin" : "prod";
    r.emit("aten::scatter_reduce.two", {r.tensor(0), axis, r.tensor(1), r.tensor(2), Text{std::string(name)}});
  }
}

void one_hot(Recovery& r) {
  const auto classes = r.graph.number(r.in(1));
  r.emit("aten::one_hot", {r.tensor(0), static_cast<std::int64_t>(classes.value_or(-1))});
}

void top_k(Recovery& r) {
  const std::int64_t axis = r.onnx().integer("axis", -1);
  const Dims& out = r.out_dims();
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(out.size()) : axis);
  r.emit_many("aten::topk",
              {r.tensor(0), out[at], axis, r.onnx().integer("largest", 1) != 0, r.onnx().integer("sorted", 1) != 0},
              {r.out(0), r.out(1)});
}

void arg_max(Recovery& r) {
  r.emit("aten::argmax", {r.tensor(0), r.onnx().integer("axis", 0), r.onnx().integer("keepdims", 1) != 0});
}
void arg_min(Recovery& r) {
  r.emit("aten::argmin", {r.tensor(0), r.onnx().integer("axis", 0), r.onnx().integer("keepdims", 1) != 0});
}

void cum_sum(Recovery& r) {
  r.emit("aten::cumsum", {r.tensor(0), static_cast<std::int64_t>(r.graph.number(r.in(1)).value_or(0))});
}

void trilu(Recovery& r) {
  const auto k = static_cast<std::int64_t>(r.graph.number(r.in(1)).value_or(0));
  r.emit(r.onnx().integer("upper", 1) ? "aten::triu" : "aten::tril", {r.tensor(0), k});
}

void non_zero(Recovery& r) {
  const SlotId found = r.call("aten::nonzero", {r.tensor(0)}, std::string(r.graph.name(r.out())) + ".rows");
  r.emit("aten::transpose.int", {found, std::int64_t{0}, std::int64_t{1}});
}

constexpr std::array list{
    OperatorHandler{"Gather", gather},
    OperatorHandler{"GatherElements", gather_elements},
    OperatorHandler{"GatherND", gather_nd},
    OperatorHandler{"ScatterND", scatter_nd},
    OperatorHandler{"ScatterElements", scatter_elements},
    OperatorHandler{"Scatter", scatter_elements},
    OperatorHandler{"OneHot", one_hot},
    OperatorHandler{"TopK", top_k},
    OperatorHandler{"ArgMax", arg_max},
    OperatorHandler{"ArgMin", arg_min},
    OperatorHandler{"CumSum", cum_sum},
    OperatorHandler{"Trilu", trilu},
    OperatorHandler{"NonZero", non_zero},
};

}  // namespace

OperatorFamily indexing_operators() { return list; }

}  // namespace headroom::recovery
