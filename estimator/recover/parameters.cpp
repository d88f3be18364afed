#include "estimator/recover/parameters.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "estimator/recover/frozen_tables.h"

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
  static const std::unordered_set<std::string_view> exact = {"alibi_slopes",
                                                             "alphas_cumprod",
                                                             "anchors",
                                                             "attn_mask",
                                                             "betas",
                                                             "bias_mask",
                                                             "cos_cached",
                                                             "embed_scale",
                                                             "final_logits_bias",
                                                             "freqs",
                                                             "freqs_cis",
                                                             "freqs_cos",
                                                             "freqs_sin",
                                                             "grid",
                                                             "hann_window",
                                                             "inv_freq",
                                                             "inv_timescales",
                                                             "mask",
                                                             "masked_bias",
                                                             "mel_basis",
                                                             "num_batches_tracked",
                                                             "original_inv_freq",
                                                             "pe",
                                                             "pixel_mean",
                                                             "pixel_std",
                                                             "pos_table",
                                                             "pos_weight",
                                                             "position_ids",
                                                             "quantiles",
                                                             "relative_coords_table",
                                                             "relative_position_index",
                                                             "rope_cos",
                                                             "rope_sin",
                                                             "running_mean",
                                                             "running_var",
                                                             "sin_cached",
                                                             "slopes",
                                                             "sqrt_alphas_cumprod",
                                                             "sqrt_one_minus_alphas_cumprod",
                                                             "token_type_ids",
                                                             "tril",
                                                             "window"};
  const std::string_view l = leaf(name);
  return exact.contains(l) || l.ends_with("_mask");
}

ParameterTable::ParameterTable(const GraphView& graph, const Origins& origins, Program& program,
                               ProgramBuilder& builder)
    : graph_(graph), origins_(origins), program_(program), builder_(builder), by_value_(graph.shaped().values.size()) {}

SlotId ParameterTable::place_newest() {
  Parameter& p = entries_.back().parameter;
  p.slot = builder_.slot(p.name);
  entry_of_.resize(p.slot.at() + 1, -1);
  entry_of_[p.slot.at()] = static_cast<std::int32_t>(entries_.size() - 1);
  return p.slot;
}

SlotId ParameterTable::stored(ValueId v, bool reversed) {
  v = graph_.resolve(v);
  if (const SlotId known = by_value_[v.at()]; known.valid()) {
    Parameter& p = entry(known).parameter;
    if (reversed && p.dims.size() == 2 && p.dims == graph_.dims(v)) std::reverse(p.dims.begin(), p.dims.end());
    return known;
  }
  const Initializer* init = graph_.initializer(v);
  Entry& e = entries_.emplace_back();
  Parameter& p = e.parameter;
  p.name = std::string(graph_.name(v));
  p.dims = graph_.dims(v);
  if (reversed) std::reverse(p.dims.begin(), p.dims.end());
  p.dtype = graph_.value(v).dtype;
  const bool made_up = is_anonymous(p.name), anonymous = made_up || p.name.find('.') == std::string::npos;
  p.buffer = !is_float(p.dtype) || is_buffer_name(p.name) || !init;
  // Constants of an export (val_7, expand_2) are no parameters: training them would save the other side of each
  // product.
  if (origins_.has_text())
    if (const char kind = named_kind(v); kind == 'b' || kind == 'c' || (anonymous && kind != 'p')) p.buffer = true;
  p.trainable = !p.buffer && !is_sinusoid_table(graph_, origins_, v);
  // Folding lists its new weights last: their place is where they are used.
  e.initializer = init && !made_up ? init - graph_.initializers().front() : -1;
  e.certain = init && !anonymous;
  return by_value_[v.at()] = place_newest();
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
    e.parameter.trainable = !buffer && is_float(e.parameter.dtype) && !is_sinusoid_table(graph_, origins_, init);
    if (is_float(dtype) && e.parameter.dims != dims && !dims.empty()) e.parameter.dims = dims;
  } else {
    Entry& e = entries_.emplace_back();
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
    slot = place_newest();
  }
  by_reference_.emplace(std::move(key), slot);
  return slot;
}

SlotId ParameterTable::restored(std::string name, Dims dims, DType dtype, bool buffer, SlotId beside) {
  Entry& e = entries_.emplace_back();
  e.parameter.name = std::move(name);
  e.parameter.dims = std::move(dims);
  e.parameter.dtype = dtype;
  e.parameter.buffer = buffer;
  e.parameter.trainable = !buffer;
  e.parameter.assumed = true;
  e.beside = beside;
  e.certain = true;
  return place_newest();
}

SlotId ParameterTable::constant(ValueId v) {
  v = graph_.resolve(v);
  if (const SlotId known = by_value_[v.at()]; known.valid()) return known;
  Entry& e = entries_.emplace_back();
  e.parameter.name = std::string(graph_.name(v));
  e.parameter.dims = graph_.dims(v);
  e.parameter.dtype = graph_.value(v).dtype;
  e.parameter.buffer = true;
  e.parameter.trainable = false;
  e.parameter.assumed = true;
  return by_value_[v.at()] = place_newest();
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

void ParameterTable::same_as(ValueId from, SlotId slot) { by_value_[graph_.resolve(from).at()] = slot; }

void ParameterTable::finish(const std::vector<bool>& slot_is_read) {
  for (const Initializer* i : graph_.initializers()) {
    const std::string_view name = graph_.name(i->value);
    // A fold of a batch norm makes "conv1.weight_bias": no parameter of the module.
    const bool of_module =
        name.find('.') != std::string_view::npos && !is_anonymous(name) && !name.ends_with("weight_bias");
    if (of_module && !by_value_[i->value.at()].valid()) stored(i->value);
  }
  // Place in named_parameters(): the file's order; what the file no longer lists stands with its module's siblings,
  // else where it is first used.
  struct Place {
    std::int64_t initializer;
    int side;  // 0: before the initializer, 1: it, 2: after
    std::size_t used;
    auto operator<=>(const Place&) const = default;
  };
  struct Siblings {
    std::int64_t first, last;
    bool lists_weight = false;
  };
  std::unordered_map<std::string_view, Siblings> siblings;  // by module
  for (const Entry& e : entries_) {
    if (e.initializer < 0) continue;
    Siblings& s = siblings.try_emplace(parent(e.parameter.name), e.initializer, e.initializer).first->second;
    s.first = std::min(s.first, e.initializer);
    s.last = std::max(s.last, e.initializer);
    s.lists_weight = s.lists_weight || leaf(e.parameter.name) == "weight";
  }
  std::vector<std::pair<Place, Entry*>> order;
  std::vector<Place> place_of(entries_.size());
  std::int64_t previous = -1;
  order.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    Entry& e = entries_[i];
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
    } else if (const auto it = siblings.find(parent(e.parameter.name)); it != siblings.end()) {
      const bool before = leaf(e.parameter.name) == "weight" && !it->second.lists_weight;
      place = {before ? it->second.first : it->second.last, before ? 0 : 2, i};
    }
    place_of[i] = place;
    const std::size_t s = e.parameter.slot.at();
    if (e.certain || (s < slot_is_read.size() && slot_is_read[s])) order.emplace_back(place, &e);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  program_.parameters.reserve(order.size());
  for (const auto& [place, e] : order) program_.parameters.push_back(std::move(e->parameter));
}

}  // namespace headroom::recovery
