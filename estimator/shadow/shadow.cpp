#include "estimator/shadow/shadow.h"

#include <algorithm>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/shadow/checkpoint.h"
#include "estimator/shadow/formula_node.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/tables/overloads.h"

namespace headroom::shadow {
namespace {

const Operator* find_rule(std::string_view name) {
  static const auto* rules = [] {
    auto* map = new std::unordered_map<std::string_view, const Operator*>;
    for (const auto family : operator_families())
      for (const Operator& op : family) map->emplace(op.name, &op);
    return map;
  }();
  const auto found = rules->find(name);
  return found == rules->end() ? nullptr : found->second;
}

}  // namespace

Shadow::Shadow(const aten::Table& table, const DeviceFacts& device)
    : table_(table), device_(device), recorder_(trace_), evaluator_(table, *this) {
  trace_.blocks.reserve(1 << 12);
  trace_.events.reserve(1 << 14);
}

Shadow::~Shadow() = default;

// ---- Machine -------------------------------------------------------------------------------------------------------

void Shadow::reserve_slots(std::size_t count) {
  if (slots_.size() < count) slots_.resize(std::max(count, slots_.size() * 2));
}

void Shadow::create(SlotId slot, const TensorSpec& spec) {
  const auto before = std::exchange(recorder_.purpose, spec.category);
  recorder_.op = -1;
  recorder_.module = {};
  recorder_.site = -1;
  Tensor t = spec.host ? host_tensor(spec.dims, spec.dtype)
             : spec.channels_last && spec.dims.size() == 4
                 ? empty_strided(spec.dims, channels_last_strides(spec.dims), spec.dtype)
                 : empty(spec.dims, spec.dtype);
  recorder_.purpose = before;
  t->requires_grad = spec.requires_grad && is_float(spec.dtype);
  t->parameter = spec.parameter;
  t->label = recorder_.text(spec.name);
  recorder_.name(*t->storage, t->label);
  slots_[slot.at()] = Value(std::move(t));
}

Value Shadow::value_of(const Arg& a) const {
  struct Convert {
    const Shadow& m;
    Value operator()(Unset) const { return {}; }
    Value operator()(None) const { return {}; }
    Value operator()(SlotId s) const { return s.valid() ? m.slots_[s.at()] : Value{}; }
    Value operator()(const Slots& slots) const {
      ValueList l;
      l.reserve(slots.size());
      for (const SlotId s : slots) l.push_back((*this)(s));
      return Value(std::move(l));
    }
    Value operator()(std::int64_t i) const { return Value(i); }
    Value operator()(double d) const { return Value(d); }
    Value operator()(bool b) const { return Value(b); }
    Value operator()(const Dims& d) const { return Value(d); }
    Value operator()(DType t) const { return Value(t); }
    Value operator()(DTypeOf of) const { return Value(m.slots_[of.slot.at()].tensor()->dtype); }
    Value operator()(const Text& t) const { return Value(std::string_view(t.text)); }
  };
  return std::visit(Convert{*this}, a);
}

void Shadow::call(std::string_view op, std::span<const Arg> args, std::span<const SlotId> outputs, const Site& site) {
  const Entry& e = entry(op);
  if (e.op && e.op->kind == Operator::Kind::silent) return;
  recorder_.module = site.module;
  recorder_.site = site.text.empty() ? -1 : recorder_.text(site.text);
  recorder_.op = e.text;  // of what a composite makes itself
  Outputs results;
  {
    Arguments values;
    const auto& arguments = e.schema->arguments;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool given = i < args.size() && !std::holds_alternative<Unset>(args[i]);
      values.push_back(given ? value_of(args[i]) : e.defaults[i]);
      Value& v = values.back();
      // One number stands for a list of that many, as in Python.
      if (v.is_number() && arguments[i].list && arguments[i].type == aten::Type::integer)
        v = Value(Dims(static_cast<std::size_t>(std::max<int>(arguments[i].list_size, 1)), v.integer()));
    }
    results = run(e, span_of(values));
  }
  std::size_t k = 0;
  const auto store = [&](Value v) {
    if (k < outputs.size() && outputs[k].valid()) slots_[outputs[k].at()] = std::move(v);
    ++k;
  };
  for (Value& v : results) {
    if (v.is_list())
      for (Value& one : v.list()) store(std::move(one));
    else
      store(std::move(v));
  }
}

void Shadow::assign(SlotId to, SlotId from) {
  if (first_pass_) first_pass_->binds(to.at());
  Value v = slots_[from.at()];
  slots_[to.at()] = std::move(v);
}

void Shadow::drop(SlotId slot) { slots_[slot.at()] = Value{}; }

bool Shadow::holds(SlotId slot) const { return !slots_[slot.at()].none(); }

Dims Shadow::sizes(SlotId slot) const { return slots_[slot.at()].tensor()->sizes; }

DType Shadow::dtype(SlotId slot) const { return slots_[slot.at()].tensor()->dtype; }

void Shadow::backward(SlotId loss) {
  const Tensor root = slots_[loss.at()].tensor();
  recorder_.op = -1;
  Tensor grad = empty_like(root);  // ones_like(loss), held until backward() returns
  run_backward(*this, {&root, 1}, {grad});
}

bool Shadow::has_grad(SlotId parameter) const { return static_cast<bool>(slots_[parameter.at()].tensor()->grad); }

void Shadow::load_grad(SlotId to, SlotId parameter) { slots_[to.at()] = Value(slots_[parameter.at()].tensor()->grad); }

void Shadow::clear_grad(SlotId parameter) { slots_[parameter.at()].tensor()->grad.reset(); }

void Shadow::enter_autocast(DType dtype) {
  autocast_ = dtype;
  ++autocast_depth_;
}

void Shadow::leave_autocast() {
  if (--autocast_depth_ > 0) return;
  autocast_ = DType::undefined;
  cast_cache_.places.clear();
  cast_cache_.casts.clear();
}

void Shadow::suspend_autocast() { ++autocast_suspended_; }
void Shadow::resume_autocast() { --autocast_suspended_; }

void Shadow::enter_checkpoint(const CheckpointSegment& segment) {
  Entered entered;
  if (grad_enabled_ && segment.reentrant) {
    entered.node = Ref<ReentrantNode>(new ReentrantNode(*this, segment));
    grad_enabled_ = false;
  } else if (grad_enabled_) {
    entered.frame = std::make_shared<CheckpointFrame>(*this, segment);
    entered.frame->outer = std::exchange(checkpoint_, entered.frame);
  }
  entered_.push_back(std::move(entered));
}

void Shadow::leave_checkpoint() {
  const Entered entered = std::move(entered_.back());
  entered_.pop_back();
  if (entered.frame) checkpoint_ = std::exchange(entered.frame->outer, nullptr);
  if (entered.node) {
    grad_enabled_ = true;
    entered.node->take_results(*this);
  }
}

void Shadow::phase(Phase phase, int step) { recorder_.begin(phase, step); }

void Shadow::begin_pass(int step) {
  if (step == 0 && !recorder_.log) first_pass_.emplace(recorder_, slots_);
}

void Shadow::end_pass() {
  if (first_pass_ && !first_pass_->end(workspaces())) first_pass_.reset();  // it holds graphs
}

bool Shadow::repeat_pass(int step) {
  const bool repeated = first_pass_ && first_pass_->repeat(step);
  first_pass_.reset();
  return repeated;
}

bool Shadow::repeat_step(int step) {
  if (recorder_.log) return false;  // it wants to see every call
  if (!steady_.reached()) return steady_.repeat(portrait(), step);
  steady_.repeat(step);
  return true;
}

/// Variables in the order in which their blocks' categories come, since a step's variables are new ones each time.
Portrait Shadow::portrait() {
  std::array<std::vector<const Value*>, category_count + 1> variables;
  Portrait p = steady_.portrait();
  for (const Value& v : slots_) {
    if (v.none() || p.add_lasting(v)) continue;
    const bool block = v.is_tensor() && v.tensor()->storage->block >= 0;
    variables[block ? static_cast<std::size_t>(recorder_.category(v.tensor()->storage->block)) : category_count]
        .push_back(&v);
  }
  for (const auto& of_category : variables)
    for (const Value* v : of_category) p.add(*v);
  for (const Ref<Storage>* workspace : workspaces()) p.add(*workspace);
  p.add(static_cast<std::uint64_t>(recorder_.purpose) << 1 | (grad_enabled_ ? 1U : 0U));
  if (checkpoint_ || autocast_depth_ > 0 || !cast_cache_.casts.empty()) p.spoil();
  // A graph that holds no block decides nothing.
  if (!p.complete()) p.finish();
  return p;
}

Trace Shadow::take_trace() {
  // What the process still holds stays: its frees are not part of the trace.
  Trace out = std::move(trace_);
  trace_ = {};
  recorder_.stop();
  return out;
}

// ---- dispatch ------------------------------------------------------------------------------------------------------

const Shadow::Entry& Shadow::entry(std::string_view op) {
  const Entry*& recent = recent_entries_[reinterpret_cast<std::uintptr_t>(op.data()) / 8 % recent_entries_.size()];
  if (!recent || recent->name != op) recent = &named_entry(op);
  return *recent;
}

const Shadow::Entry& Shadow::named_entry(std::string_view op) {
  if (const auto found = entries_.find(op); found != entries_.end()) return *found->second;
  auto e = std::make_unique<Entry>();
  e->name = op;
  e->schema = table_.find(op);
  e->op = find_rule(op);
  if (!e->schema)
    throw std::logic_error("operator " + std::string(op) + " is not in the table of torch " +
                           std::string(table_.version()));
  e->text = recorder_.text(e->name);
  for (const aten::Argument& a : e->schema->arguments) e->defaults.push_back(default_of(a));
  const std::string_view key = e->name;
  return *entries_.emplace(key, std::move(e)).first->second;
}

Outputs Shadow::call(const aten::OpSchema& op, std::span<const Value> args) {
  const Entry*& e = by_schema_[&op];
  if (!e) e = &entry("aten::" + std::string(op.name));
  return run(*e, args);
}

Outputs Shadow::dispatch(std::string_view op, std::span<const Value> args) { return dispatch(entry(op), args); }

Outputs Shadow::dispatch(const Entry& e, std::span<const Value> args) {
  if (args.size() >= e.defaults.size()) return run(e, args);
  Arguments values(args.begin(), args.end());
  for (std::size_t i = args.size(); i < e.defaults.size(); ++i) values.push_back(e.defaults[i]);
  return run(e, span_of(values));
}

Outputs Shadow::run(const Entry& e, std::span<const Value> args) {
  const auto run_cast = [&](std::span<const Value> values) {
    if (!e.op || e.op->kind == Operator::Kind::kernel) return run_autograd(e, values);
    if (e.op->kind == Operator::Kind::factory) return run_kernel(e, values);
    return e.op->kind == Operator::Kind::composite ? e.op->rule(*this, Args(values)) : Outputs{};
  };
  if (e.schema->cast == aten::Cast::none || below_autograd_ > 0 || autocast_dtype() == DType::undefined)
    return run_cast(args);
  Arguments values(args.begin(), args.end());
  cast_arguments(e, values);
  const Deeper inside(autocast_suspended_);
  return run_cast(span_of(values));
}

Outputs Shadow::run_autograd(const Entry& e, std::span<const Value> args) {
  if (below_autograd_ > 0) return run_kernel(e, args);
  const auto work = [&] { return run_kernel(e, args); };
  if (inside_effect_ > 0) {  // of a formula: nothing is recorded for backward
    Outputs out = work();
    if (e.schema->view) set_history(e, args, out, {});
    return out;
  }
  Signature s(&e, mode());
  for (const Value& v : args) s.add(v);
  const Ref<CallPlan> plan = plan_of(s, e, args);
  Ref<FormulaNode> node;
  if (plan->node) node = Ref<FormulaNode>(new FormulaNode(*this, plan, args));
  Outputs out = checkpoint_ && checkpoint_->keeps(e) ? checkpoint_->kept(*this, e, args)
                : plan->known                        ? plan->kernel.run(s, recorder_, work)
                                                     : work();
  if (StepLog* log = recorder_.log)
    for (const Value& v : out)
      if (v.is_tensor() && v.tensor()) log->results.push_back({e.text, v.tensor()->storage->block});
  if (node || e.schema->view) set_history(e, args, out, Ref<Node>(node.get()));
  if (node) node->save_results(*this, out);
  return out;
}

std::uint64_t Shadow::mode() const {
  return static_cast<std::uint64_t>(autocast_dtype()) << 8 | (on_autograd_thread_ ? 2U : 0U) |
         (grad_enabled() ? 1U : 0U);
}

Ref<CallPlan> Shadow::plan_of(const Signature& s, const Entry& e, std::span<const Value> args) {
  if (!s.complete()) return Ref<CallPlan>(new CallPlan(e, args, grad_enabled()));
  Ref<CallPlan>& plan = plans_[s];
  if (!plan) {
    plan = Ref<CallPlan>(new CallPlan(e, args, grad_enabled()));
    plan->known = true;
  }
  return plan;
}

void Shadow::set_history(const Entry& e, std::span<const Value> args, const Outputs& outputs, Ref<Node> node) {
  const aten::OpSchema& s = *e.schema;
  std::uint16_t nr = 0;
  const auto one = [&](const Tensor& t, const aten::Return& r) {
    if (!t) return;
    if (s.view && r.alias != 0 && !r.written) {
      for (std::size_t i = 0; i < s.arguments.size(); ++i)
        if (s.arguments[i].alias == r.alias && args[i].is_tensor() && !(args[i].tensor() == t))
          t->base = args[i].tensor()->base ? args[i].tensor()->base : args[i].tensor();
    }
    if (!node || !(is_float(t->dtype) || is_complex(t->dtype))) return;
    t->grad_fn = node;
    t->output_nr = nr;
    node->inputs.resize(std::max<std::size_t>(node->inputs.size(), nr + 1u));
    node->inputs[nr] = {t->sizes, t->dtype};
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const aten::Return& r = s.returns[std::min(i, s.returns.size() - 1)];
    if ((s.differentiable >> i & 1U) == 0) continue;
    if (outputs[i].is_list()) {
      for (const Value& v : outputs[i].list()) {
        one(v.tensor(), r);
        ++nr;
      }
    } else if (outputs[i].is_tensor()) {
      one(outputs[i].tensor(), r);
      ++nr;
    } else {
      ++nr;
    }
  }
  if (node && node->inputs.empty()) node->inputs.resize(1);
}

Outputs Shadow::run_kernel(const Entry& e, std::span<const Value> args) {
  const Deeper below(below_autograd_);
  // The label of what is allocated: the outermost operator below autograd.
  const auto op = recorder_.op;
  if (below_autograd_ == 1) recorder_.op = e.text;
  Outputs out = e.op ? e.op->rule(*this, Args(args)) : run_generic(e, args);
  recorder_.op = op;
  return out;
}

Outputs Shadow::run_generic(const Entry& e, std::span<const Value> args) {
  const aten::OpSchema& s = *e.schema;
  Outputs out;
  Bytes made;
  const auto shaped_like = [&]() -> Tensor {
    // A backward kernel's gradient has the shape of the input it belongs to.
    if (s.base.find("_backward") != std::string_view::npos) {
      for (const char* name : {"self", "input"})
        if (const int i = s.argument(name); i >= 0 && args[static_cast<std::size_t>(i)].is_tensor())
          return empty_like_contiguous(args[static_cast<std::size_t>(i)].tensor());
    }
    BoundArguments tensors;
    for (const Value& v : args)
      if (v.is_tensor() || v.is_number()) tensors.push_back(v);
    if (broadcasts(span_of(tensors))) return elementwise(*this, result_type(span_of(tensors)), span_of(tensors));
    const auto size = [](const Value& v) { return v.is_tensor() ? v.tensor()->count() : 0; };
    return empty_like_contiguous(std::ranges::max_element(tensors, {}, size)->tensor());
  };
  for (const aten::Return& r : s.returns) {
    if (r.alias != 0) {
      for (std::size_t i = 0; i < s.arguments.size(); ++i)
        if (s.arguments[i].alias == r.alias) {
          out.push_back(r.written || !args[i].is_tensor() ? args[i] : Value(alias(args[i].tensor())));
          break;
        }
      continue;
    }
    if (r.type != aten::Type::tensor || r.list) {
      out.emplace_back();
      continue;
    }
    Tensor t = shaped_like();
    made += t->storage->bytes;
    out.emplace_back(std::move(t));
  }
  if (!s.in_place) note_generic(e.name, made);
  return out;
}

void Shadow::note_generic(std::string_view op, Bytes bound) {
  for (const auto& [name, at] : noted_)
    if (name == op) {
      diagnostics[at].bound = std::max(diagnostics[at].bound, bound);
      return;
    }
  noted_.emplace_back(op, diagnostics.size());
  diagnostics.push_back(
      {.code = "operator-by-bound",
       .severity = Severity::warning,
       .node = {},
       .message = std::string(op) + " has no rule of its own: outputs as its schema says, temporaries unknown",
       .bound = bound});
}

void Shadow::note_workspace(Bytes bound) {
  if (bound <= unmeasured_workspace_) return;
  unmeasured_workspace_ = bound;
  if (workspace_note_ == 0) {
    diagnostics.push_back({.code = "conv-workspace",
                           .severity = Severity::info,
                           .node = {},
                           .message = "convolution workspaces by rule: not measured for these shapes on this card"});
    workspace_note_ = diagnostics.size();
  }
  diagnostics[workspace_note_ - 1].bound = bound;
}

// ---- autocast ------------------------------------------------------------------------------------------------------

Value Shadow::cached_cast(const Value& v, DType to) {
  if (v.is_list()) {
    ValueList l;
    for (const Value& one : v.list()) l.push_back(cached_cast(one, to));
    return Value(std::move(l));
  }
  if (!v.is_tensor()) return v;
  const Tensor& t = v.tensor();
  if (t->host || !is_float(t->dtype) || t->dtype == DType::f64 || t->dtype == to) return v;
  const bool cacheable = is_half(to) && t->dtype == DType::f32 && t->requires_grad && t->is_leaf() && !t->base;
  if (!cacheable) return Value(one("aten::_to_copy", t, to));
  const auto [place, fresh] = cast_cache_.places.try_emplace(t.get(), cast_cache_.casts.size());
  if (fresh) cast_cache_.casts.push_back(one("aten::_to_copy", t, to));
  return Value(cast_cache_.casts[place->second]);
}

void Shadow::cast_arguments(const Entry& e, Arguments& args) {
  const Deeper inside(autocast_suspended_);
  const aten::OpSchema& s = *e.schema;
  const auto cast_all = [&](DType to) {
    // C++ evaluates the wrapper's arguments from the last to the first.
    for (std::size_t i = args.size(); i-- > 0;)
      if (s.arguments[i].type == aten::Type::tensor) args[i] = cached_cast(args[i], to);
  };
  switch (s.cast) {
    case aten::Cast::low:
      cast_all(autocast_);
      return;
    case aten::Cast::fp32:
      cast_all(DType::f32);
      return;
    case aten::Cast::fp32_dtype: {
      const int i = s.argument("dtype");
      const bool half = args[0].is_tensor() && !args[0].tensor()->host && is_half(args[0].tensor()->dtype);
      if (i < 0)
        cast_all(DType::f32);
      else if (half && args[static_cast<std::size_t>(i)].none())
        args[static_cast<std::size_t>(i)] = Value(DType::f32);
      return;
    }
    case aten::Cast::promote: {
      DType widest = autocast_;
      const auto look = [&](const auto& self, const Value& v) -> void {
        if (v.is_list())
          for (const Value& one : v.list()) self(self, one);
        else if (v.is_tensor() && !v.tensor()->host && v.tensor()->dtype == DType::f32)
          widest = DType::f32;
      };
      for (const Value& v : args) look(look, v);
      cast_all(widest);
      return;
    }
    case aten::Cast::refused:
      throw Error(Exit::bad_input, "PyTorch refuses " + e.name + " under autocast", "",
                  "the model would raise an error with this precision: use the with_logits form");
    case aten::Cast::none:
      return;
  }
}

// ---- making tensors ------------------------------------------------------------------------------------------------

Tensor Shadow::empty(const Dims& sizes, DType dtype) { return empty_strided(sizes, contiguous_strides(sizes), dtype); }

Tensor Shadow::empty_strided(const Dims& sizes, const Dims& strides, DType dtype) {
  Tensor t(new TensorImpl);
  t->dtype = dtype;
  t->sizes = sizes;
  t->strides = strides;
  t->storage = recorder_.make(storage_bytes(sizes, strides, dtype));
  return t;
}

Tensor Shadow::empty_like(const Tensor& t, DType dtype) {
  const DType made = dtype == DType::undefined ? t->dtype : dtype;
  if (t->host) return host_tensor(t->sizes, made);
  if (is_dense(*t)) return empty_strided(t->sizes, t->strides, made);
  return empty_strided(t->sizes, dense_strides_like(t->sizes, t->strides), made);
}

Tensor Shadow::empty_like_contiguous(const Tensor& t, DType dtype) {
  const DType made = dtype == DType::undefined ? t->dtype : dtype;
  return t->host ? host_tensor(t->sizes, made) : empty(t->sizes, made);
}

Tensor Shadow::host_tensor(const Dims& sizes, DType dtype) {
  Tensor t(new TensorImpl);
  t->dtype = dtype;
  t->sizes = sizes;
  t->strides = contiguous_strides(sizes);
  t->host = true;
  t->storage = Recorder::host();
  return t;
}

Tensor Shadow::alias(const Tensor& t, const Dims& sizes, const Dims& strides, std::int64_t offset) {
  Tensor a(new TensorImpl);
  a->dtype = t->dtype;
  a->host = t->host;
  a->sizes = sizes;
  a->strides = strides;
  a->offset = offset;
  a->storage = t->storage;
  return a;
}

Tensor Shadow::contiguous(const Tensor& t) { return is_contiguous(*t) ? t : empty_like_contiguous(t); }

Ref<Storage> Shadow::scratch(Bytes bytes) { return recorder_.make(bytes); }

Ref<Storage> Shadow::workspace(Bytes bytes) { return recorder_.make(bytes, Category::workspaces); }

void Shadow::use_cublas() {
  Ref<Storage>& mine = cublas_[on_autograd_thread_ ? 1 : 0];
  if (!mine) mine = workspace(device_.cublas_workspace);
}

void Shadow::use_cublaslt() {
  // As cuBLAS' own: one a handle, and threads have their own. Backward asks when a segment runs again.
  Ref<Storage>& mine = cublaslt_[on_autograd_thread_ ? 1 : 0];
  if (!mine) mine = workspace(device_.cublaslt_workspace);
}

void Shadow::use_dropout_state() {
  if (dropout_state_) return;
  first_pass_.reset();
  scratch(Bytes(8));  // the seed, drawn on the device
  dropout_state_ = workspace(Bytes(std::int64_t{24} * device_.sm_count * device_.threads_per_sm));
}

}  // namespace headroom::shadow
