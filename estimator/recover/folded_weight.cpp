#include "estimator/recover/folded_weight.h"

#include <algorithm>
#include <array>

namespace headroom::recovery {

namespace {

bool made_by(std::string_view name, std::string_view operation) {
  if (!name.starts_with(operation)) return false;
  const std::string_view number = name.substr(operation.size());
  return number.empty() ||
         (number.front() == '_' && number.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

/// Made by an operation: parameters have a dot in their names.
bool is_constant(const Recovery& r, ValueId v) {
  return v.valid() && r.origins.has_text() && r.graph.is_stored(v) && is_float(r.dtype(v)) && r.dims(v).size() >= 2 &&
         r.graph.name(v).find('.') == std::string_view::npos;
}

}  // namespace

bool is_turned_weight(const Recovery& r, ValueId v) {
  constexpr std::array<std::string_view, 4> turns = {"permute", "transpose", "t", "numpy_T"};
  return is_constant(r, v) && r.dims(v).size() == 2 &&
         std::any_of(turns.begin(), turns.end(), [&](std::string_view op) { return made_by(r.graph.name(v), op); });
}

bool is_folded_scale(const Recovery& r, ValueId v) {
  if (!is_constant(r, v) || !(made_by(r.graph.name(v), "view") || made_by(r.graph.name(v), "tmp"))) return false;
  const Dims& d = r.dims(v);
  return std::count_if(d.begin(), d.end(), [](std::int64_t n) { return n > 1; }) == 1;
}

bool is_folded_weight(const Recovery& r, ValueId v) {
  constexpr std::array<std::string_view, 5> operations = {"mul", "div", "view", "_unsafe_view", "getitem"};
  return is_turned_weight(r, v) ||
         (is_constant(r, v) && std::any_of(operations.begin(), operations.end(),
                                           [&](std::string_view op) { return made_by(r.graph.name(v), op); }));
}

SlotId folded_weight(Recovery& r, ValueId v) {
  // A module that runs again makes the same of its weight; one call stands for all.
  if (r.has_slot(v) && !r.parameters.is_parameter(r.tensor(v))) return r.tensor(v);
  const bool turned = is_turned_weight(r, v);
  const std::string module = r.path().empty() ? "" : std::string(r.path()) + ".";
  const SlotId weight = r.parameters.trained(v, turned, module + "weight");
  if (turned || is_folded_scale(r, v)) {
    r.define(v, weight);
    return weight;
  }
  if (!made_by(r.graph.name(v), "mul")) return r.emit("aten::mul.Tensor", {weight, 1.0}, v);
  Dims lengths(r.dims(v).size(), 1);
  lengths[0] = r.dims(v)[0];
  const SlotId g = r.parameters.restored(module + "weight_g", lengths, r.dtype(v), false, weight);
  return r.emit_many("aten::_weight_norm_interface", {weight, g, std::int64_t{0}}, {v, {}})[0];
}

}  // namespace headroom::recovery
