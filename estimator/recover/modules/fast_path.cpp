#include "estimator/recover/modules/fast_path.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "estimator/recover/slot_uses.h"

namespace headroom::recovery {

namespace {

/// Calls [begin, end) that are one fused call.
struct Fused {
  std::size_t begin = 0, end = 0;
  std::string_view op;
  Args args;
};

/// nn.MultiheadAttention, self-attention, batch first.
struct Attention {
  std::size_t begin = 0, end = 0;
  std::string module;  ///< its path
  SlotId input, output;
  Args projections;  ///< in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias
  std::int64_t width = 0, heads = 0;
};

class FastPath {
 public:
  explicit FastPath(Recovery& r) : r_(r), p_(r.program), uses_(r.program), returned_(r.program.slot_count()) {
    for (const ProgramOutput& o : p_.outputs)
      if (o.slot.valid()) returned_[o.slot.at()] = true;
  }

  void run() {
    std::vector<Fused> all;
    for (std::size_t i = 0; i < p_.calls.size(); ++i) {
      const std::optional<Attention> attention = attention_at(i);
      if (!attention) continue;
      std::optional<Fused> fused = layer_of(*attention);
      if (!fused) fused = alone(*attention);
      if (!closed(*fused) || (!all.empty() && all.back().end > fused->begin)) continue;
      i = fused->end - 1;
      all.push_back(*std::move(fused));
    }
    if (!all.empty()) replace(all);
  }

 private:
  bool is(std::size_t i, std::string_view op) const { return i < p_.calls.size() && p_.name_of(p_.calls[i].op) == op; }
  SlotId slot(std::size_t i, std::size_t argument) const {
    const std::vector<Arg>& args = p_.calls[i].args;
    const auto* s = argument < args.size() ? std::get_if<SlotId>(&args[argument]) : nullptr;
    return s ? *s : SlotId{};
  }
  SlotId result(std::size_t i) const { return p_.calls[i].outputs.front(); }
  std::string_view path(std::size_t i) const { return p_.module_path(p_.calls[i].module); }
  const Dims& dims(SlotId parameter) const { return r_.parameters.at(parameter).dims; }
  /// With a bias; of the weights the modules' paths tell, not the names: inference exports make many up.
  bool is_linear(std::size_t i, SlotId input) const {
    return is(i, "aten::linear") && slot(i, 0) == input && r_.parameters.is_parameter(slot(i, 1)) &&
           r_.parameters.is_parameter(slot(i, 2));
  }
  bool is_linear_of(std::size_t i, SlotId input, const std::string& module) const {
    return is_linear(i, input) && path(i) == module;
  }
  bool is_norm_of(std::size_t i, SlotId input, const std::string& module) const {
    return is(i, "aten::layer_norm") && slot(i, 0) == input && r_.parameters.is_parameter(slot(i, 2)) &&
           r_.parameters.is_parameter(slot(i, 3)) && path(i) == module && p_.calls[i].args.size() > 4;
  }
  /// A class that the file names is the one of torch.nn.
  bool may_be(const std::string& path, std::string_view class_name) const {
    const auto m = std::ranges::find(p_.modules, path, &Module::path);
    return m == p_.modules.end() || m->class_name.empty() || m->class_name.ends_with(class_name);
  }

  /// torch/nn/functional.py, _in_projection_packed, after the product.
  bool is_packed_projection(std::size_t i) const {
    constexpr auto ops = std::to_array<std::string_view>({"aten::unsqueeze", "aten::transpose.int", "aten::squeeze.dim",
                                                          "aten::contiguous", "aten::select.int", "aten::select.int",
                                                          "aten::select.int"});
    if (!(is(i + 1, "aten::view") || is(i + 1, "aten::reshape")) || slot(i + 1, 0) != result(i)) return false;
    for (std::size_t k = 0; k < ops.size(); ++k)
      if (!is(i + 2 + k, ops[k])) return false;
    return true;
  }

  /// `i`: the projection of query, key and value at once.
  std::optional<Attention> attention_at(std::size_t i) const {
    if (i == 0 || !is(i - 1, "aten::transpose.int") || !is_linear(i, result(i - 1)) || !is_packed_projection(i))
      return {};
    Attention a;
    a.module = path(i);
    if (!may_be(a.module, "MultiheadAttention")) return {};
    std::size_t last = i + 1;
    std::optional<std::size_t> attends;
    for (; last < p_.calls.size() && !is(last, "aten::linear"); ++last)
      if (is(last, "aten::scaled_dot_product_attention")) attends = last;
    if (!attends || last + 2 >= p_.calls.size() || !attends_to_itself(*attends, i, a)) return {};
    if (!is_linear(last, slot(last, 0)) || !path(last).starts_with(a.module)) return {};
    if (dims(slot(i, 1)) != Dims{3 * a.width, a.width} || dims(slot(last, 1)) != Dims{a.width, a.width}) return {};
    if (!(is(last + 1, "aten::view") || is(last + 1, "aten::reshape")) || slot(last + 1, 0) != result(last)) return {};
    if (!is(last + 2, "aten::transpose.int") || slot(last + 2, 0) != result(last + 1)) return {};
    a.begin = i - 1;
    a.end = last + 3;
    a.input = slot(i - 1, 0);
    a.output = result(last + 2);
    a.projections = {slot(i, 1), slot(i, 2), slot(last, 1), slot(last, 2)};
    return a;
  }

  /// No mask, an even number of heads, which are told by the query's shape [batch, heads, sequence, size of a head];
  /// all that is read comes of the projection.
  bool attends_to_itself(std::size_t attends, std::size_t projection, Attention& a) const {
    const std::vector<Arg>& args = p_.calls[attends].args;
    const auto* causal = args.size() > 5 ? std::get_if<bool>(&args[5]) : nullptr;
    if ((args.size() > 3 && !std::holds_alternative<None>(args[3])) || (causal && *causal)) return false;
    for (std::size_t k = 0; k < 3; ++k) {
      const SlotId s = slot(attends, k);
      if (!s.valid() || uses_.maker(s) <= static_cast<std::int32_t>(projection)) return false;
    }
    const auto query = static_cast<std::size_t>(uses_.maker(slot(attends, 0)));
    const auto* sizes = p_.calls[query].args.size() > 1 ? std::get_if<Dims>(&p_.calls[query].args[1]) : nullptr;
    if (!sizes || sizes->size() != 4 || (*sizes)[1] <= 0 || (*sizes)[3] <= 0) return false;
    a.heads = (*sizes)[1];
    a.width = a.heads * (*sizes)[3];
    return a.heads % 2 == 0;
  }

  static Fused alone(const Attention& a) {
    Fused f{a.begin, a.end, "aten::_native_multi_head_attention", {a.input, a.input, a.input, a.width, a.heads}};
    f.args.insert(f.args.end(), a.projections.begin(), a.projections.end());
    f.args.insert(f.args.end(), {None{}, false, true, None{}});
    return f;
  }

  /// nn.TransformerEncoderLayer around its attention.
  std::optional<Fused> layer_of(const Attention& a) const {
    constexpr std::string_view name = "self_attn";
    if (!a.module.ends_with(name)) return {};
    const std::string layer = a.module.substr(0, a.module.size() - name.size());  // "" or with a dot at its end
    if (!may_be(layer.substr(0, layer.rfind('.')), "TransformerEncoderLayer")) return {};
    const bool norm_first =
        a.begin > 0 && is_norm_of(a.begin - 1, slot(a.begin - 1, 0), layer + "norm1") && result(a.begin - 1) == a.input;
    const SlotId source = norm_first ? slot(a.begin - 1, 0) : a.input;
    std::size_t i = a.end, norm1 = a.begin - 1, norm2 = 0;
    SlotId x = a.output;
    const auto next = [&](bool fits) {
      if (fits) x = result(i++);
      return fits;
    };
    const auto added_to = [&](SlotId residual) {
      while (is(i, "aten::dropout") && slot(i, 0) == x) x = result(i++);
      return next(is(i, "aten::add.Tensor") && p_.calls[i].args.size() == 2 &&
                  ((slot(i, 0) == residual && slot(i, 1) == x) || (slot(i, 0) == x && slot(i, 1) == residual)));
    };
    const auto normed = [&](const std::string& module, std::size_t& at) {
      at = i;
      return next(is_norm_of(i, x, module));
    };
    if (!added_to(source) || (!norm_first && !normed(layer + "norm1", norm1))) return {};
    const SlotId middle = x;
    if (norm_first && !normed(layer + "norm2", norm2)) return {};
    const std::size_t up = i;
    if (!next(is_linear_of(i, x, layer + "linear1"))) return {};
    const bool gelu = is(i, "aten::gelu");
    if (!next((gelu && p_.calls[i].args.size() == 1) || (is(i, "aten::relu") && slot(i, 0) == x))) return {};
    while (is(i, "aten::dropout") && slot(i, 0) == x) x = result(i++);
    const std::size_t down = i;
    if (!next(is_linear_of(i, x, layer + "linear2")) || !added_to(middle)) return {};
    if (!norm_first && !normed(layer + "norm2", norm2)) return {};
    const auto* eps = std::get_if<double>(&p_.calls[norm1].args[4]);
    const auto* eps2 = std::get_if<double>(&p_.calls[norm2].args[4]);
    if (!eps || !eps2 || *eps != *eps2) return {};
    Fused f{norm_first ? norm1 : a.begin, i, "aten::_transformer_encoder_layer_fwd", {source, a.width, a.heads}};
    f.args.insert(f.args.end(), a.projections.begin(), a.projections.end());
    f.args.insert(f.args.end(), {gelu, norm_first, *eps});
    for (const std::size_t norm : {norm1, norm2})
      f.args.insert(f.args.end(), {p_.calls[norm].args[2], p_.calls[norm].args[3]});
    for (const std::size_t linear : {up, down})
      f.args.insert(f.args.end(), {p_.calls[linear].args[1], p_.calls[linear].args[2]});
    return f;
  }

  /// Nothing else reads what is made on the way.
  bool closed(const Fused& f) const {
    for (std::size_t i = f.begin; i + 1 < f.end; ++i)
      for (const SlotId s : p_.calls[i].outputs) {
        if (!s.valid()) continue;
        const auto inside = [&](std::int32_t reader) { return static_cast<std::size_t>(reader) < f.end; };
        if (returned_[s.at()] || !std::ranges::all_of(uses_.readers(s), inside)) return false;
      }
    return true;
  }

  /// The fused call takes the place of the last.
  void replace(std::vector<Fused>& all) {
    std::vector<CallOrigin>& origins = r_.call_origins();
    std::size_t kept = 0;
    auto fused = all.begin();
    for (std::size_t i = 0; i < p_.calls.size(); ++i) {
      const bool inside = fused != all.end() && i >= fused->begin;
      if (inside && i + 1 < fused->end) continue;
      if (kept != i) {
        p_.calls[kept] = std::move(p_.calls[i]);
        origins[kept] = origins[i];
      }
      if (inside) {
        Call& c = p_.calls[kept];
        c.op = r_.builder.op(fused->op);
        c.args = std::move(fused->args);
        if (fused->op == "aten::_native_multi_head_attention") c.outputs.push_back({});
        ++fused;
      }
      ++kept;
    }
    p_.calls.resize(kept);
    origins.resize(kept);
  }

  Recovery& r_;
  Program& p_;
  const SlotUses uses_;
  std::vector<bool> returned_;  ///< by slot
};

}  // namespace

void take_fast_path(Recovery& r) {
  if (r.options.fast_path) FastPath(r).run();
}

}  // namespace headroom::recovery
