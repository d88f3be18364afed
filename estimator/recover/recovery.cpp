#include "estimator/recover/recovery.h"

#include <algorithm>
#include <array>

#include "estimator/recover/casts.h"
#include "estimator/recover/operators/operators.h"

namespace headroom::recovery {

namespace {

/// Known tensors up to this size are shape arithmetic when nothing else tells; larger ones live on the device.
constexpr std::int64_t max_host_elements = 64;

std::size_t at(NodeIndex n) { return static_cast<std::size_t>(n); }

bool is_vector(const Dims& d) {
  return !d.empty() && std::count_if(d.begin(), d.end(), [](auto n) { return n != 1; }) <= 1;
}

/// Operators that make a device tensor out of Python numbers.
bool makes_tensor(std::string_view op) {
  return op == "Range" || op == "ConstantOfShape" || op == "EyeLike" || op.starts_with("Random") || op == "Bernoulli" ||
         op == "Multinomial";
}

/// Its operands must have one dtype.
bool multiplies(std::string_view op) {
  constexpr auto names = std::to_array<std::string_view>({"linear", "addmm", "mm", "matmul", "bmm", "baddbmm", "einsum",
                                                          "conv1d", "conv2d", "conv3d", "conv_transpose1d",
                                                          "conv_transpose2d", "conv_transpose3d", "convolution"});
  op.remove_prefix(std::min(op.size(), std::string_view("aten::").size()));
  return std::find(names.begin(), names.end(), op.substr(0, op.find('.'))) != names.end();
}

}  // namespace

Recovery::Recovery(const ShapedGraph& shaped, const RecoverOptions& recover_options, Program& target)
    : graph(shaped),
      origins(graph, recover_options.read_text),
      mode(mode_of(graph, origins)),
      options(recover_options),
      program(target),
      builder(target),
      parameters(graph, origins, target, builder),
      match_of_(graph.size(), -1),
      owned_(graph.size(), false),
      live_(graph.size(), false),
      host_(shaped.values.size(), false),
      wide_(shaped.values.size(), false),
      narrow_(graph.size(), false),
      slot_of_(shaped.values.size()),
      module_of_scope_(origins.scope_count()) {
  // The TorchScript exporter merges equal initializers of an inference export.
  merges_equal_vectors = mode.torch_names && !origins.has_text() && !mode.exported_training;
  find_host_values();
  program.training = options.training;
  builder.module("");
  for (const ShapedInput& i : shaped.inputs) {
    const SlotId s = builder.slot(std::string(i.name));
    slot_of_[i.value.at()] = s;
    ProgramInput input;
    input.slot = s;
    input.name = std::string(i.name);
    input.dims = i.dims;
    input.dtype = i.dtype;
    input.batch_axis = i.batch_axis;
    input.sequence_axis = i.sequence_axis;
    program.inputs.push_back(std::move(input));
  }
}

void Recovery::claim(Match match) {
  const NodeIndex n = match.last;
  if (is_claimed(n)) {
    matches_[at(match_of_[at(n)])] = std::move(match);
    return;
  }
  match_of_[at(n)] = static_cast<std::int32_t>(matches_.size());
  matches_.push_back(std::move(match));
}

ValueId Recovery::replaced(ValueId v) const {
  v = graph.resolve(v);
  for (auto it = replaced_.find(v); it != replaced_.end(); it = replaced_.find(v)) v = it->second;
  return v;
}

void Recovery::restore_dropout(ValueId after, std::string name, int outer_frames, bool in_layers) {
  restored_.try_emplace(graph.resolve(after), std::move(name), outer_frames, "dropout", in_layers);
}

bool Recovery::restores_dropouts_in_layers() const {
  return std::any_of(restored_.begin(), restored_.end(),
                     [](const auto& lost) { return lost.second.op == "dropout" && lost.second.in_layers; });
}

void Recovery::restore_call(ValueId after, std::string_view op, std::string name) {
  restored_.try_emplace(graph.resolve(after), std::move(name), 0, op);
}

void Recovery::find_live() {
  std::vector<NodeIndex> work;
  const auto want = [&](ValueId v) {
    if (!v.valid()) return;
    const NodeIndex p = graph.producer(replaced(v));
    if (p == no_node || live_[at(p)]) return;
    live_[at(p)] = true;
    work.push_back(p);
  };
  const auto want_body = [&](const ShapedBody& body, auto&& self) -> void {
    for (const ShapedNode& n : body.nodes) {
      for (const ValueId v : n.node->inputs) want(v);
      for (const auto& inner : n.bodies) self(*inner, self);
    }
  };
  for (const ValueId o : graph.shaped().outputs) want(o);
  while (!work.empty()) {
    const NodeIndex n = work.back();
    work.pop_back();
    if (is_claimed(n)) {
      for (const ValueId v : matches_[at(match_of_[at(n)])].reads) want(v);
      continue;
    }
    if (const auto it = reads_.find(n); it != reads_.end()) {
      for (const ValueId v : it->second) want(v);
      continue;
    }
    for (const ValueId v : graph.node(n).inputs) want(v);
    for (const auto& body : graph.shaped_node(n).bodies) want_body(*body, want_body);
  }
}

void Recovery::run() {
  find_live();
  for (std::size_t n = 0; n < graph.size(); ++n) {
    at_ = static_cast<NodeIndex>(n);
    if (!before_.empty())
      if (const auto it = before_.find(at_); it != before_.end())
        for (const auto& emit_before : it->second) emit_before();
    if (live_[n]) lower(at_);
  }
  for (const ValueId o : graph.shaped().outputs)
    if (o.valid()) program.outputs.push_back({tensor(o), std::string(graph.name(o)), graph.dims(o), dtype(o)});
  at_ = no_node;
}

bool Recovery::is_small(ValueId v) const {
  const ShapedValue& x = graph.value(v);
  return x.contents && x.count() <= max_host_elements && x.dims.size() <= 1;
}

bool Recovery::is_host_node(NodeIndex n) const {
  const Node& node = graph.node(n);
  if (node.op_type == "Shape" || node.op_type == "Size") return true;
  for (const ValueId o : node.outputs)
    if (o.valid() && !is_small(o)) return false;
  if (makes_tensor(node.op_type) || node.outputs.empty()) return false;
  for (const ValueId i : node.inputs)
    if (i.valid() && !is_host(i)) return false;
  return true;
}

/// A few numbers that the root module trains ("logit_scale"). Constants of the dynamo exporter have names without a dot
/// as well, but only a parameter is named by the text; those of TorchScript are anonymous, and several numbers there
/// are as likely a buffer.
bool Recovery::is_root_parameter(ValueId v, const std::unordered_set<std::string_view>& named_parameters) const {
  const std::string_view name = graph.name(v);
  if (is_anonymous(name) || !is_float(graph.value(v).dtype)) return false;
  if (origins.has_text()) return named_parameters.contains(name);
  if (!mode.torch_names || is_buffer_name(name)) return false;
  // Several numbers are weights where they are first made positive, or one by one.
  constexpr auto readers = std::to_array<std::string_view>({"Relu", "Softmax", "Sigmoid", "Exp", "Softplus", "Gather"});
  return graph.value(v).count() == 1 || std::ranges::any_of(graph.readers(v), [&](NodeIndex n) {
           return std::ranges::find(readers, graph.op(n)) != readers.end();
         });
}

void Recovery::find_host_values() {
  std::unordered_set<std::string_view> named_parameters;
  for (const FxGroup& group : origins.groups())
    for (const FxArg& a : group.fx.args)
      if (a.is_reference() && a.text.starts_with("p_")) named_parameters.insert(a.text.substr(2));
  for (const Initializer* i : graph.initializers()) {
    const std::string_view name = graph.name(i->value);
    const bool of_module = !is_anonymous(name) && name.find('.') != std::string_view::npos;
    if (!of_module && is_small(i->value) && !is_root_parameter(i->value, named_parameters)) set_host(i->value);
  }
  for (std::size_t n = 0; n < graph.size(); ++n) {
    const auto index = static_cast<NodeIndex>(n);
    const Node& node = graph.node(index);
    const bool host = node.op_type == "Constant" ? is_small(graph.output(index)) : is_host_node(index);
    if (!host) continue;
    for (const ValueId o : node.outputs)
      if (o.valid()) set_host(o);
  }
}

void Recovery::lower(NodeIndex n) {
  if (is_claimed(n)) {
    const Match& match = matches_[at(match_of_[at(n)])];
    match.emit();
    return widen(n, match.reads);
  }
  const Node& node = graph.node(n);
  if (node.op_type == "Identity" && node.domain.empty()) {
    if (!node.metadata.fx_node.empty()) alias(out(), in(0));
    return;
  }
  if (node.op_type == "Constant" && node.domain.empty()) return;
  if (graph.output(n).valid() && is_host(graph.output(n))) return;
  lower_operator(*this);
  if (node.op_type != "Cast") widen(n, graph.inputs(n));
}

void Recovery::widen(NodeIndex n, const std::vector<ValueId>& reads) {
  if (narrow_[at(n)]) return;
  for (const ValueId v : reads) {
    if (!v.valid() || !is_wide(v) || overridden_.contains({n, graph.resolve(v)})) continue;
    for (const ValueId o : graph.node(n).outputs)
      if (o.valid() && is_float(graph.value(o).dtype)) set_wide(o);
    return;
  }
}

Arg Recovery::operand(ValueId v) {
  if (!overrides_.empty())
    if (overrides_.contains({at_, graph.resolve(v)})) return tensor(v);
  v = replaced(v);
  if (slot_of_[v.at()].valid()) return slot_of_[v.at()];
  const ShapedValue& value = graph.value(v);
  if (is_host(v) && value.contents && value.count() == 1) {
    const double number = *value.number();
    if (value.dtype == DType::b8) return number != 0;
    if (is_float(value.dtype)) return number;
    return static_cast<std::int64_t>(number);
  }
  return tensor(v);
}

SlotId Recovery::tensor(ValueId v) {
  if (!overrides_.empty())
    if (const auto it = overrides_.find({at_, graph.resolve(v)}); it != overrides_.end()) {
      const auto make = std::move(it->second);
      overrides_.erase(it);  // what it makes may read the value itself
      return make();
    }
  v = replaced(v);
  SlotId& slot = slot_of_[v.at()];
  if (slot.valid()) return slot;
  const NodeIndex p = graph.producer(v);
  if ((graph.initializer(v) || graph.is(p, "Constant")) && !is_host(v)) {
    if (merges_equal_vectors && graph.is_weight(v) && is_vector(graph.dims(v))) return parameters.stored_in(v, path());
    slot = parameters.stored(v);
    restore_original_frequencies(slot);
  } else if (graph.value(v).contents) {
    slot = parameters.constant(v);
  } else {
    Args args{Arg(graph.dims(v)), Arg(graph.value(v).dtype)};
    slot = call("aten::empty.memory_format", std::move(args), std::string(graph.name(v)));
    diagnose("operator-by-bound", Severity::warning, "a value that no recovered call makes stands as an empty tensor");
  }
  return slot;
}

SlotId Recovery::emit(std::string_view op, Args args, ValueId v) {
  const SlotId s = call(op, std::move(args), std::string(graph.name(v)));
  define(v, s);
  return s;
}

SlotId Recovery::call(std::string_view op, Args args, std::string name) {
  const SlotId s = builder.slot(std::move(name));
  list_call(op, std::move(args), {s});
  return s;
}

Slots Recovery::emit_many(std::string_view op, Args args, const std::vector<ValueId>& values) {
  Slots slots;
  for (const ValueId v : values) slots.push_back(v.valid() ? builder.slot(std::string(graph.name(v))) : SlotId{});
  list_call(op, std::move(args), slots);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].valid()) define(values[i], slots[i]);
  return slots;
}

void Recovery::set_wide(ValueId v) {
  v = graph.resolve(v);
  wide_[v.at()] = true;
  if (slot_of_[v.at()].valid()) wide_slots_.insert(slot_of_[v.at()]);
}

void Recovery::narrow_operands(std::string_view op, Args& args) {
  if (mode.low_precision_file || wide_slots_.empty() || !multiplies(op) || in_rotary_module(module_at(at_))) return;
  std::vector<SlotId*> wide;
  bool mixed = false;
  const auto see = [&](SlotId& s) {
    if (!s.valid()) return;
    if (wide_slots_.contains(s))
      wide.push_back(&s);
    else
      mixed = true;
  };
  for (Arg& a : args) {
    if (auto* s = std::get_if<SlotId>(&a)) see(*s);
    if (auto* list = std::get_if<Slots>(&a)) std::for_each(list->begin(), list->end(), see);
  }
  if (!mixed || wide.empty()) return;
  for (SlotId* s : wide) *s = call_to(*this, *s, stream_dtype(*this), program.slot_names[s->at()] + ".back");
  set_narrow(at_);
}

void Recovery::detach_operands(Args& args) {
  const auto detach = [&](SlotId& s) {
    if (!s.valid() || no_grad_slots_.contains(s)) return;
    if (parameters.is_parameter(s) && !parameters.at(s).trainable) return;
    const auto [it, fresh] = detached_.try_emplace(s);
    if (fresh) {
      it->second = builder.slot(program.slot_names[s.at()] + ".detached");
      no_grad_slots_.insert(it->second);
      append("aten::detach", {s}, {it->second});
    }
    s = it->second;
  };
  for (Arg& a : args) {
    if (auto* s = std::get_if<SlotId>(&a)) detach(*s);
    if (auto* list = std::get_if<Slots>(&a)) std::for_each(list->begin(), list->end(), detach);
  }
}

void Recovery::list_call(std::string_view op, Args args, Slots outputs) {
  narrow_operands(op, args);
  if (origins.in_no_grad_block(at_) && !in_rotary_module(module_at(at_))) {
    detach_operands(args);
    no_grad_slots_.insert(outputs.begin(), outputs.end());
  }
  append(op, std::move(args), std::move(outputs));
}

void Recovery::append(std::string_view op, Args args, Slots outputs) {
  while (!args.empty() && std::holds_alternative<Unset>(args.back())) args.pop_back();
  const ModuleId module = module_at(at_);
  Call& made = builder.append(op, std::move(args), std::move(outputs), module, std::string(onnx().name));
  made.autocast_off = in_rotary_module(module);
  CallOrigin origin;
  origin.node = at_;
  origin.outer_frames = outer_frames_;
  origins_of_calls_.push_back(origin);
}

Slots Recovery::list(ValueId v) const {
  const auto it = lists_.find(graph.resolve(v));
  return it == lists_.end() ? Slots{} : it->second;
}

void Recovery::effect(std::string_view op, Args args) {
  list_call(op, std::move(args), {SlotId{}});
  keep_last();
}

void Recovery::define(ValueId v, SlotId slot) {
  v = graph.resolve(v);
  if (!cast_results_.empty() && cast_results_.erase(v)) {
    slot = call_to(*this, slot, stream_dtype(*this), std::string(graph.name(v)) + ".back");
    set_narrow(at_);
  }
  slot_of_[v.at()] = slot;
  if (wide_[v.at()]) wide_slots_.insert(slot);
  if (restored_.contains(v)) emit_restored(v);
}

void Recovery::alias(ValueId v, ValueId source) {
  if (is_host(source)) set_host(v);
  const SlotId s = slot_of_[replaced(source).at()];
  if (s.valid() || !graph.value(source).contents || !is_host(source)) define(v, s.valid() ? s : tensor(source));
}

void Recovery::emit_restored(ValueId v) {
  const RestoredCall& lost = restored_.at(v);
  constexpr double unknown_probability = 0.1;  // lost in the export; only zero or not changes memory
  Args args{slot_of_[v.at()]};
  if (lost.op == "dropout") args.insert(args.end(), {unknown_probability, options.training});
  const std::string name(lost.op);
  outer_frames_ = lost.outer_frames;
  const SlotId s =
      call("aten::" + name, std::move(args), lost.name.empty() ? std::string(graph.name(v)) + "." + name : lost.name);
  outer_frames_ = 0;
  if (lost.name.empty()) {
    slot_of_[v.at()] = s;
  } else {
    named_slots_.emplace(lost.name, s);
  }
}

SlotId Recovery::slot_named(std::string_view fx_name) const {
  if (named_slots_.empty()) return {};
  const auto it = named_slots_.find(std::string(fx_name));
  return it == named_slots_.end() ? SlotId{} : it->second;
}

SlotId Recovery::named_parameter(std::string_view reference, const Dims& dims, DType dtype) {
  const SlotId slot = parameters.named(reference, path(), dims, dtype);
  restore_original_frequencies(slot);
  return slot;
}

void Recovery::restore_original_frequencies(SlotId frequencies) {
  // Rotary modules of transformers register a copy of their frequencies that no export holds.
  const Parameter& p = parameters.at(frequencies);
  const bool named = p.name.ends_with("rotary_emb.inv_freq");
  const bool folded = p.buffer && p.name.find('.') == std::string::npos && is_rotary(path(), origins.module_class(at_));
  if (!is_float(p.dtype) || !(named || folded) || !seen_frequencies_.insert(frequencies).second) return;
  const std::string module = named ? p.name.substr(0, p.name.size() - 8) : std::string(path()) + ".";
  parameters.restored(module + "original_inv_freq", {element_count(p.dims)}, p.dtype, true, frequencies);
}

bool Recovery::in_rotary_module(ModuleId module) {
  if (rotary_modules_.size() <= module.at()) rotary_modules_.resize(module.at() + 1, -1);
  std::int8_t& known = rotary_modules_[module.at()];
  if (known < 0) known = is_rotary(program.modules[module.at()].path, program.modules[module.at()].class_name);
  return known != 0;
}

ModuleId Recovery::module_at(NodeIndex n) {
  ModuleId& module = module_of_scope_[origins.scope_number(n)];
  if (!module.valid()) module = builder.module(origins.module(n), origins.module_class(n));
  return module;
}

void Recovery::diagnose(std::string code, Severity severity, std::string message, Bytes bound) {
  Diagnostic d;
  d.code = std::move(code);
  d.severity = severity;
  d.node = at_ == no_node ? std::string() : std::string(onnx().name);
  d.message = std::move(message);
  d.bound = bound;
  program.diagnostics.push_back(std::move(d));
}

}  // namespace headroom::recovery
