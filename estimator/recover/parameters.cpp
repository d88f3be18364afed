#include "estimator/recover/parameters.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headroom::recovery {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// torch.export flattens "h.0.ln_1.weight" to "h_0_ln_1_weight" and lowers it.
std::string mangled(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '.' ? '_' : lower(c);
  return out;
}

std::string_view parent(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

std::string_view leaf(std::string_view name) { return name.substr(name.rfind('.') + 1); }

}  // namespace

bool is_anonymous(std::string_view name) {
  if (name.find("::") != std::string_view::npos || name.starts_with("val_") || name.starts_with("/")) return true;
  if (name.starts_with("Constant") || name.empty()) return true;
  return std::all_of(name.begin(), name.end(), [](char c) { return (c >= '0' && c <= '9') || c == '_' || c == 'v'; });
}

bool is_buffer_name(std::string_view name) {
  constexpr auto exact = std::to_array<std::string_view>({"running_mean",
                                                          "final_logits_bias",
                                                          "running_var",
                                                          "num_batches_tracked",
                                                          "inv_freq",
                                                          "position_ids",
                                                          "anchors",
                                                          "relative_position_index",
                                                          "relative_coords_table",
                                                          "original_inv_freq",
                                                          "attn_mask",
                                                          "bias_mask",
                                                          "masked_bias",
                                                          "token_type_ids",
                                                          "mask",
                                                          "pe",
                                                          "freqs",
                                                          "cos_cached",
                                                          "sin_cached",
                                                          "inv_timescales",
                                                          "embed_scale",
                                                          "slopes",
                                                          "alibi_slopes",
                                                          "tril",
                                                          "freqs_cis",
                                                          "freqs_cos",
                                                          "freqs_sin",
                                                          "rope_cos",
                                                          "rope_sin",
                                                          "pos_table",
                                                          "window",
                                                          "hann_window",
                                                          "mel_basis",
                                                          "pixel_mean",
                                                          "pixel_std",
                                                          "betas",
                                                          "alphas_cumprod",
                                                          "sqrt_alphas_cumprod",
                                                          "sqrt_one_minus_alphas_cumprod",
                                                          "quantiles",
                                                          "pos_weight",
                                                          "grid"});
  const std::string_view l = leaf(name);
  return std::find(exact.begin(), exact.end(), l) != exact.end() || l.ends_with("_mask");
}

ParameterTable::ParameterTable(const GraphView& graph, const Origins& origins, Program& program,
                               ProgramBuilder& builder)
    : graph_(graph), origins_(origins), program_(program), builder_(builder) {
  std::int64_t place = 0;
  for (const Initializer* i : graph.initializers()) place_.emplace(i->value, place++);
}

SlotId ParameterTable::add(Entry e) {
  e.parameter.slot = builder_.slot(e.parameter.name);
  entry_of_.resize(e.parameter.slot.at() + 1, -1);
  entry_of_[e.parameter.slot.at()] = static_cast<std::int32_t>(entries_.size());
  entries_.push_back(std::move(e));
  return entries_.back().parameter.slot;
}

SlotId ParameterTable::stored(ValueId v, bool reversed) {
  v = graph_.resolve(v);
  if (const auto it = by_value_.find(v); it != by_value_.end()) {
    Entry& e = entry(it->second);
    if (reversed && e.parameter.dims.size() == 2 && e.parameter.dims == graph_.dims(v))
      std::reverse(e.parameter.dims.begin(), e.parameter.dims.end());
    return it->second;
  }
  const Initializer* init = graph_.initializer(v);
  Entry e;
  Parameter& p = e.parameter;
  p.name = std::string(graph_.name(v));
  p.dims = graph_.dims(v);
  if (reversed) std::reverse(p.dims.begin(), p.dims.end());
  p.dtype = graph_.value(v).dtype;
  const bool anonymous = is_anonymous(p.name) || p.name.find('.') == std::string::npos;
  p.buffer = !is_float(p.dtype) || is_buffer_name(p.name) || !init;
  // Constants of an export (val_7, expand_2) are no parameters: training them would save the other side of each
  // product.
  if (origins_.has_text())
    if (const char kind = named_kind(v); kind == 'b' || kind == 'c' || (anonymous && kind != 'p')) p.buffer = true;
  p.trainable = !p.buffer;
  // Folding lists its new weights last: their place is where they are used.
  e.initializer = init && !is_anonymous(p.name) ? place_.at(v) : -1;
  e.certain = init && !anonymous;
  const SlotId slot = add(std::move(e));
  by_value_.emplace(v, slot);
  return slot;
}

SlotId ParameterTable::stored_in(ValueId v, std::string_view path) {
  const std::string_view name = graph_.name(v);
  const std::string_view module = parent(name);
  const std::string_view called = leaf(name);
  const auto holds = [](std::string_view outer, std::string_view inner) {
    return inner.starts_with(outer) && inner.size() > outer.size() &&
           (inner[outer.size()] == '.' || inner[outer.size()] == '_');
  };
  const bool own = path == module || module.empty() || path.empty() || is_anonymous(name) || is_buffer_name(name) ||
                   holds(module, path) || holds(path, module);
  if (own) return stored(v);
  std::string restored_name = std::string(path) + "." + std::string(called);
  const auto [it, fresh] = split_.try_emplace(restored_name);
  if (fresh) it->second = restored(std::move(restored_name), graph_.dims(v), graph_.value(v).dtype, false, {});
  return it->second;
}

void ParameterTable::name_weight_of(SlotId slot, std::string_view module_path) {
  Parameter& p = entry(slot).parameter;
  if (module_path.empty() || !is_anonymous(p.name)) return;
  p.name = std::string(module_path) + ".weight";
  program_.slot_names[slot.at()] = p.name;
}

SlotId ParameterTable::trained(ValueId v, bool reversed, std::string name) {
  const SlotId slot = stored(v, reversed);
  Parameter& p = entry(slot).parameter;
  p.name = std::move(name);
  p.buffer = false;
  p.trainable = true;
  program_.slot_names[slot.at()] = p.name;
  return slot;
}

SlotId ParameterTable::dequantized(ValueId v) {
  const SlotId slot = stored(v);
  Parameter& p = entry(slot).parameter;
  p.dtype = DType::f32;
  p.buffer = false;
  p.trainable = true;
  return slot;
}

SlotId ParameterTable::vector(ValueId v, std::int64_t size) {
  const SlotId slot = stored(v);
  if (is_parameter(slot) && graph_.value(v).count() == size) entry(slot).parameter.dims = {size};
  return slot;
}

void ParameterTable::index_names() const {
  if (!mangled_.empty()) return;
  for (const Initializer* i : graph_.initializers()) mangled_.emplace(mangled(graph_.name(i->value)), i->value);
}

ValueId ParameterTable::initializer_named(std::string_view reference) const {
  index_names();
  const auto it = mangled_.find(mangled(reference.substr(2)));
  return it == mangled_.end() ? ValueId{} : it->second;
}

char ParameterTable::named_kind(ValueId v) {
  const auto look = [this](const FxArg& a, auto&& self) -> void {
    if (a.is_reference() && (a.text.starts_with("b_") || a.text.starts_with("c_") || a.text.starts_with("p_")))
      if (const ValueId named = initializer_named(a.text); named.valid()) named_kinds_.emplace(named, a.text.front());
    for (const FxArg& item : a.items) self(item, self);
  };
  if (!std::exchange(texts_searched_, true))
    for (const FxGroup& group : origins_.groups())
      for (const FxArg& a : group.fx.args) look(a, look);
  const auto it = named_kinds_.find(v);
  return it == named_kinds_.end() ? '\0' : it->second;
}

SlotId ParameterTable::named(std::string_view reference, std::string_view path, const Dims& dims, DType dtype) {
  std::string key = mangled(reference.substr(2));
  if (const auto it = by_reference_.find(key); it != by_reference_.end()) return it->second;
  const bool buffer = !reference.starts_with("p_");
  SlotId slot;
  const ValueId init = initializer_named(reference);
  if (init.valid()) {
    slot = stored(init);
    Entry& e = entry(slot);
    e.parameter.buffer = buffer;
    e.parameter.trainable = !buffer && is_float(e.parameter.dtype);
    if (is_float(dtype) && e.parameter.dims != dims && !dims.empty()) e.parameter.dims = dims;
  } else {
    Entry e;
    const std::string prefix = mangled(path);
    const std::string_view rest = std::string_view(key);
    if (!path.empty() && rest.starts_with(prefix) && rest.size() > prefix.size() && rest[prefix.size()] == '_') {
      e.parameter.name = std::string(path) + "." + std::string(reference.substr(2 + prefix.size() + 1));
    } else {
      e.parameter.name = std::string(reference.substr(2));
    }
    e.parameter.dims = dims;
    e.parameter.dtype = dtype;
    e.parameter.buffer = buffer;
    e.parameter.trainable = !buffer && is_float(dtype);
    e.parameter.assumed = true;
    e.certain = true;
    slot = add(std::move(e));
  }
  by_reference_.emplace(std::move(key), slot);
  return slot;
}

SlotId ParameterTable::restored(std::string name, Dims dims, DType dtype, bool buffer, SlotId beside) {
  Entry e;
  e.parameter.name = std::move(name);
  e.parameter.dims = std::move(dims);
  e.parameter.dtype = dtype;
  e.parameter.buffer = buffer;
  e.parameter.trainable = !buffer;
  e.parameter.assumed = true;
  e.beside = beside;
  e.certain = true;
  return add(std::move(e));
}

SlotId ParameterTable::constant(ValueId v) {
  v = graph_.resolve(v);
  if (const auto it = by_value_.find(v); it != by_value_.end()) return it->second;
  Entry e;
  e.parameter.name = std::string(graph_.name(v));
  e.parameter.dims = graph_.dims(v);
  e.parameter.dtype = graph_.value(v).dtype;
  e.parameter.buffer = true;
  e.parameter.trainable = false;
  e.parameter.assumed = true;
  const SlotId slot = add(std::move(e));
  by_value_.emplace(v, slot);
  return slot;
}

void ParameterTable::set_buffer(SlotId slot) {
  if (!is_parameter(slot)) return;
  entry(slot).parameter.buffer = true;
  entry(slot).parameter.trainable = false;
}

SlotId ParameterTable::stream() const {
  for (const Entry& e : entries_)
    if (e.parameter.trainable && is_float(e.parameter.dtype) && e.parameter.dims.size() >= 2) return e.parameter.slot;
  for (const Entry& e : entries_)
    if (e.parameter.trainable && is_float(e.parameter.dtype)) return e.parameter.slot;
  return {};
}

void ParameterTable::tie(SlotId slot, std::string first_name) {
  if (!is_parameter(slot)) return;
  Entry& e = entry(slot);
  if (e.parameter.name == first_name) return;
  e.parameter.also_named.push_back(e.parameter.name);
  e.parameter.name = std::move(first_name);
  program_.slot_names[slot.at()] = e.parameter.name;
  e.first = true;
}

void ParameterTable::same_as(ValueId from, SlotId slot) { by_value_.insert_or_assign(graph_.resolve(from), slot); }

void ParameterTable::finish(const std::vector<bool>& slot_is_read) {
  for (const Initializer* i : graph_.initializers()) {
    const std::string_view name = graph_.name(i->value);
    // A fold of a batch norm makes "conv1.weight_bias": no parameter of the module.
    const bool of_module =
        name.find('.') != std::string_view::npos && !is_anonymous(name) && !name.ends_with("weight_bias");
    if (of_module && !by_value_.contains(i->value)) stored(i->value);
  }
  // Place in named_parameters(): the file's order; what the file no longer lists stands with its module's siblings,
  // else where it is first used.
  struct Place {
    std::int64_t initializer;
    int side;  // 0: before the initializer, 1: it, 2: after
    std::size_t used;
    auto operator<=>(const Place&) const = default;
  };
  std::unordered_map<std::string_view, std::pair<std::int64_t, std::int64_t>> siblings;  // first and last of a module
  std::unordered_map<std::string_view, bool> module_lists_weight;
  for (const Entry& e : entries_) {
    if (e.initializer < 0) continue;
    const std::string_view module = parent(e.parameter.name);
    const auto [it, fresh] = siblings.try_emplace(module, e.initializer, e.initializer);
    it->second = {std::min(it->second.first, e.initializer), std::max(it->second.second, e.initializer)};
    if (leaf(e.parameter.name) == "weight") module_lists_weight[module] = true;
  }
  std::vector<std::pair<Place, const Entry*>> order;
  std::vector<Place> place_of(entries_.size());
  std::int64_t previous = -1;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    const std::string_view module = parent(e.parameter.name);
    Place place{previous, 2, i};
    if (e.first) {
      place = {-1, 1, i};
    } else if (e.initializer >= 0) {
      place = {e.initializer, 1, i};
      previous = e.initializer;
    } else if (e.beside.valid()) {
      place = place_of[static_cast<std::size_t>(entry_of_[e.beside.at()])];
      place.side = 2;
      place.used = i;
    } else if (const auto it = siblings.find(module); it != siblings.end()) {
      const bool before = leaf(e.parameter.name) == "weight" && !module_lists_weight.contains(module);
      place = {before ? it->second.first : it->second.second, before ? 0 : 2, i};
    }
    place_of[i] = place;
    const std::size_t s = e.parameter.slot.at();
    if (e.certain || (s < slot_is_read.size() && slot_is_read[s])) order.emplace_back(place, &e);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  program_.parameters.reserve(order.size());
  for (const auto& [place, e] : order) program_.parameters.push_back(e->parameter);
}

}  // namespace headroom::recovery
