#include "estimator/recover/fx_call.h"

#include <algorithm>

#include "estimator/recover/folded_weight.h"
#include "estimator/recover/keyword_arguments.h"

namespace headroom::recovery {

bool is_module_tensor(std::string_view reference) {
  return reference.starts_with("p_") || reference.starts_with("b_") || reference.starts_with("c_");
}

namespace {

void collect_references(const FxArg& a, FxCall::Few<std::string_view>& out) {
  if (a.is_reference()) {
    if (std::find(out.begin(), out.end(), a.text) == out.end()) out.push_back(a.text);
  }
  for (const FxArg& i : a.items) collect_references(i, out);
}

}  // namespace

namespace {

/// An Identity of a buffer: the statistics that a batch norm has updated, for the module's next call.
bool is_updated_buffer(const GraphView& g, NodeIndex n) {
  if (!g.is(n, "Identity")) return false;
  while (g.is(n, "Identity")) {
    const ValueId source = g.input(n, 0);
    if (g.is_stored(source)) return true;
    n = g.producer(source);
  }
  return false;
}

}  // namespace

std::optional<FxCall> FxCall::resolve(const Recovery& r, const FxGroup& group) {
  if (group.opaque || group.nodes.empty()) return std::nullopt;
  std::optional<FxCall> call(std::in_place);
  FxCall& c = *call;
  c.group_ = &group;
  c.graph_ = &r.graph;
  const GraphView& g = r.graph;
  const auto inside = [&](NodeIndex n) { return n != no_node && r.origins.group_of(n) == &group; };

  for (auto it = group.nodes.rbegin(); it != group.nodes.rend() && !c.result_.valid(); ++it) {
    if (is_updated_buffer(g, *it)) continue;
    for (const ValueId o : g.node(*it).outputs) {
      if (!o.valid() || r.is_host(o)) continue;
      const auto readers = g.readers(o);
      if (g.is_output(o) || std::any_of(readers.begin(), readers.end(), [&](NodeIndex n) { return !inside(n); })) {
        c.result_ = o;
        break;
      }
    }
  }
  if (!c.result_.valid()) return std::nullopt;

  for (const NodeIndex n : group.nodes)
    for (const ValueId input : g.node(n).inputs) {
      const ValueId v = g.resolve(input);
      if (!v.valid() || r.is_host(v) || inside(g.producer(v)) || g.is_stored(v) || !g.value(v).is_tensor()) continue;
      if (std::find(c.data_.begin(), c.data_.end(), v) == c.data_.end()) c.data_.push_back(v);
    }

  // A weight that has to be turned first is read before what it is multiplied with.
  if (group.fx.target.starts_with("aten.linear"))
    if (const NodeIndex product = c.find({"MatMul", "Gemm"}); product != no_node)
      std::ranges::stable_partition(c.data_, [&](ValueId v) { return v == g.input(product, 0); });

  Few<std::string_view> references;
  for (const FxArg& a : group.fx.args) collect_references(a, references);
  for (const FxKeyword& k : group.fx.kwargs) collect_references(k.value, references);

  Few<std::string_view> tensors, unknown;
  for (const std::string_view name : references) {
    ValueId v = g.named(name);
    if (!v.valid() && is_module_tensor(name)) continue;
    if (!v.valid())
      if (const FxGroup* other = r.origins.group_named(name); other && other != &group && other->last != no_node)
        v = g.output(other->last);
    if (v.valid() && r.is_host(v)) {
      c.references_.push_back({name, v});
      continue;
    }
    tensors.push_back(name);
    if (v.valid()) {
      c.references_.push_back({name, g.resolve(v)});
    } else {
      unknown.push_back(name);
    }
  }
  if (unknown.empty()) return call;

  // Sizes that the optimiser folded have no node either; they are numbers, not data.
  unknown.erase(std::remove_if(unknown.begin(), unknown.end(), [](auto n) { return n.starts_with("sym_size"); }),
                unknown.end());
  Few<ValueId> left;
  for (const ValueId v : c.data_)
    if (std::none_of(c.references_.begin(), c.references_.end(), [&](const Resolved& x) { return x.value == v; }))
      left.push_back(v);
  // Equal constants have become one, folded ones have another name: they are inputs all the same.
  if (left.size() < unknown.size() && left.empty()) {
    for (const NodeIndex n : group.nodes)
      for (const ValueId v : g.inputs(n)) {
        if (!v.valid() || r.is_host(v) || !g.is_stored(v) || !g.value(v).is_tensor() || g.dims(v).empty()) continue;
        const bool named = std::any_of(references.begin(), references.end(), [&](std::string_view reference) {
          return g.named(reference) == v || r.parameters.initializer_named(reference) == v;
        });
        if (!named && std::find(left.begin(), left.end(), v) == left.end()) left.push_back(v);
      }
    if (left.size() != unknown.size()) left.clear();
  }
  // One to one by elimination; else in the order of the arguments; what is left over after the tensors was a size or an
  // index that has been folded.
  if (left.size() != unknown.size() && tensors.size() == c.data_.size()) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (std::find(unknown.begin(), unknown.end(), tensors[i]) != unknown.end())
        c.references_.push_back({tensors[i], c.data_[i], true});
    return call;
  }
  if (left.size() <= unknown.size()) {
    for (std::size_t i = 0; i < left.size(); ++i) c.references_.push_back({unknown[i], left[i], true});
    return call;
  }
  return std::nullopt;
}

ValueId FxCall::value(std::string_view reference) const {
  for (const Resolved& x : references_)
    if (x.reference == reference) return x.value;
  return {};
}

ValueId FxCall::value_of_arg(std::size_t i) const {
  const FxArg* a = fx().arg(i);
  return a && a->is_reference() ? value(a->text) : ValueId{};
}

bool FxCall::was_paired(std::string_view reference) const {
  return std::any_of(references_.begin(), references_.end(),
                     [&](const Resolved& x) { return x.reference == reference && x.paired; });
}

NodeIndex FxCall::find(std::initializer_list<std::string_view> op_types) const {
  for (const NodeIndex n : group_->nodes)
    if (std::find(op_types.begin(), op_types.end(), graph_->op(n)) != op_types.end()) return n;
  return no_node;
}

bool FxCall::has_parameter(std::size_t i) const {
  const FxArg* a = fx().arg(i);
  return a && a->is_reference() && is_module_tensor(a->text) && !graph_->named(a->text).valid();
}

Arg FxCall::parameter(Recovery& r, std::size_t i, const Dims& dims) const {
  const FxArg* a = fx().arg(i);
  if (!a) return Unset{};
  if (a->is(FxArg::Kind::none)) return None{};
  if (!has_parameter(i)) return convert(r, *a);
  return r.named_parameter(a->text, dims, DType::f32);
}

Arg FxCall::convert(Recovery& r, const FxArg& a) const {
  switch (a.kind) {
    case FxArg::Kind::none:
      return None{};
    case FxArg::Kind::integer:
      return a.integer;
    case FxArg::Kind::real:
      return a.real;
    case FxArg::Kind::boolean:
      return a.integer != 0;
    case FxArg::Kind::word: {
      if (a.text == "cpu" || a.text.starts_with("cuda") || a.text == "torch.strided") return Unset{};
      const DType dtype = dtype_named(a.text);
      if (dtype != DType::undefined) return dtype;
      std::string_view text = a.text;
      if (text.starts_with("torch.")) text.remove_prefix(6);
      return Text{std::string(text)};
    }
    case FxArg::Kind::reference: {
      if (const SlotId s = r.slot_named(a.text); s.valid()) return s;
      const ValueId v = value(a.text);
      if (is_folded_scale(r, v)) return folded_weight(r, v);
      if (v.valid()) return r.operand(v);
      if (is_module_tensor(a.text)) {
        // Dims of a parameter that is no longer in the file are those of the node's stored input.
        const ValueId named = r.parameters.initializer_named(a.text);
        Dims dims;
        DType dtype = DType::f32;
        for (const NodeIndex n : group_->nodes)
          for (const ValueId i : r.graph.inputs(n))
            if (i.valid() && r.graph.is_stored(i) && !r.is_host(i) && (i == named || dims.empty())) {
              dims = r.graph.dims(i);
              dtype = r.dtype(i);
            }
        return r.named_parameter(a.text, dims, dtype);
      }
      return Unset{};
    }
    case FxArg::Kind::list: {
      const bool tensors = std::any_of(a.items.begin(), a.items.end(), [&](const FxArg& i) {
        if (!i.is_reference()) return false;
        const ValueId v = value(i.text);
        return v.valid() ? !r.is_host(v) : is_module_tensor(i.text) || r.slot_named(i.text).valid();
      });
      if (tensors) {
        Slots slots;
        for (const FxArg& i : a.items) {
          const Arg one = convert(r, i);
          const auto* s = std::get_if<SlotId>(&one);
          slots.push_back(s ? *s : SlotId{});
        }
        return slots;
      }
      Dims dims;
      for (const FxArg& i : a.items) {
        const Arg one = convert(r, i);
        if (const auto* number = std::get_if<std::int64_t>(&one)) dims.push_back(*number);
      }
      return dims;
    }
  }
  return Unset{};
}

Arg FxCall::arg(Recovery& r, std::size_t i) const {
  const FxArg* a = fx().arg(i);
  return a ? convert(r, *a) : Arg(Unset{});
}

SlotId FxCall::tensor(Recovery& r, std::size_t i) const {
  const Arg a = arg(r, i);
  if (const auto* s = std::get_if<SlotId>(&a)) return *s;
  const ValueId v = value_of_arg(i);
  if (v.valid()) return r.tensor(v);
  return data_.empty() ? SlotId{} : r.tensor(data_[0]);
}

Arg FxCall::keyword(Recovery& r, std::string_view name) const {
  const FxArg* a = fx().keyword(name);
  return a ? convert(r, *a) : Arg(Unset{});
}

double FxCall::real(std::size_t i, double fallback) const {
  const FxArg* a = fx().arg(i);
  if (!a) return fallback;
  return a->is(FxArg::Kind::real) ? a->real : a->is(FxArg::Kind::integer) ? static_cast<double>(a->integer) : fallback;
}

std::int64_t FxCall::integer(std::size_t i, std::int64_t fallback) const {
  const FxArg* a = fx().arg(i);
  return a && (a->is(FxArg::Kind::integer) || a->is(FxArg::Kind::boolean)) ? a->integer : fallback;
}

Args FxCall::all_args(Recovery& r) const {
  Args out;
  for (const FxArg& a : fx().args) {
    out.push_back(convert(r, a));
    // The name of a number that the optimiser folded is gone; the node reads the number.
    const bool same_order = group_->nodes.size() == 1 || graph_->is(group_->nodes[0], "Equal");
    if (!same_order || !a.is_reference() || !std::holds_alternative<Unset>(out.back())) continue;
    if (const ValueId input = graph_->input(group_->nodes[0], out.size() - 1); input.valid())
      out.back() = r.operand(input);
  }
  for (const FxKeyword& k : fx().kwargs) {
    const auto place = keyword_position(target(), k.name);
    if (!place) continue;
    if (out.size() <= *place) out.resize(*place + 1, Unset{});
    out[*place] = convert(r, k.value);
  }
  return out;
}

}  // namespace headroom::recovery
