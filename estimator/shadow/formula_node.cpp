#include "estimator/shadow/formula_node.h"

#include <algorithm>
#include <utility>

#include "estimator/shadow/portrait.h"

namespace headroom::shadow {
namespace {

/// Sizes, strides and dtype of a tensor without its storage: what formulas ask of arguments that are not saved.
Tensor geometry(const TensorImpl& t) {
  Tensor g(new TensorImpl);
  g->dtype = t.dtype;
  g->host = t.host;
  g->sizes = t.sizes;
  g->strides = t.strides;
  g->offset = t.offset;
  g->requires_grad = t.needs_grad();
  return g;
}

Value geometry(const Value& v) {
  if (v.is_tensor()) return Value(geometry(*v.tensor()));
  if (!v.is_list()) return v;
  ValueList l;
  l.reserve(v.list().size());
  for (const Value& one : v.list()) l.push_back(geometry(one));
  return Value(std::move(l));
}

bool wanted(const Value& v) {
  if (v.is_tensor()) return v.tensor()->needs_grad();
  if (v.is_list()) return std::any_of(v.list().begin(), v.list().end(), wanted);
  return false;
}

/// Calls f on `v`, or on the elements of the list; on an undefined tensor where there is none.
template <class F>
void for_each_tensor(const Value& v, F&& f) {
  const auto one = [&f](const Value& e) { f(e.is_tensor() ? e.tensor() : Tensor()); };
  if (v.is_list())
    for (const Value& e : v.list()) one(e);
  else
    one(v);
}

}  // namespace

// ---- plans
// -----------------------------------------------------------------------------------------------------------

NodePlan::NodePlan(const Shadow::Entry& e, std::span<const Value> args) : entry(e) {
  const aten::OpSchema& s = *e.schema;
  // Edges in the order of the schema's arguments (collect_next_edges).
  std::uint64_t variables = 0;
  for (const auto& d : s.derivatives)
    for (const auto v : d.variables) variables |= std::uint64_t{1} << v;
  std::uint32_t next = 0;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if ((variables >> i & 1U) == 0) continue;
    const bool list = args[i].is_list();
    const auto count = list ? static_cast<std::uint32_t>(args[i].list().size()) : 1U;
    edges.push_back({static_cast<std::uint8_t>(i), next, count, list});
    next += count;
  }
  arguments.resize(args.size());
  for (std::size_t i = 0; i < args.size(); ++i)
    if (s.mentioned >> i & 1U) arguments[i] = geometry(args[i]);
  for (const aten::Saved& what : s.saved) {
    const std::uint64_t guards = what.result ? what.guards & variables : what.guards;
    bool guarded = what.guards != 0;
    for (std::size_t i = 0; i < args.size(); ++i) guarded = guarded && !((guards >> i & 1U) != 0 && wanted(args[i]));
    if (guarded) continue;
    if (what.result)
      of_results_.push_back(&what);
    else if (args[what.index].is_tensor() || args[what.index].is_list())
      keep(arguments_kept, what, args[what.index]);
    else
      arguments[what.index] = args[what.index];  // a number where a tensor could have been
  }
}

void NodePlan::keep(std::vector<Kept>& kept, const aten::Saved& what, const Value& v) {
  const auto count = v.is_list() ? static_cast<std::uint32_t>(v.list().size()) : 1U;
  kept.push_back({&what, saved_, count, v.is_list(), 0});
  saved_ += count;
}

void NodePlan::complete(const Outputs& outputs) {
  if (complete_) return;
  complete_ = true;
  const aten::OpSchema& s = *entry.schema;
  results.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (s.mentioned_results >> i & 1U) results[i] = geometry(outputs[i]);
  for (const aten::Saved* what : of_results_)
    if (what->index < outputs.size()) keep(results_kept, *what, outputs[what->index]);
  std::uint32_t place = 0;
  for (auto* kept : {&results_kept, &arguments_kept}) {
    std::vector<Kept*> order;
    for (Kept& k : *kept) order.push_back(&k);
    std::sort(order.begin(), order.end(), [](const Kept* a, const Kept* b) { return a->what->index < b->what->index; });
    for (Kept* k : order) k->place = place++;
  }
}

const NodePlan::Edges* NodePlan::edges_of(std::uint8_t argument) const {
  for (const Edges& e : edges)
    if (e.argument == argument) return &e;
  return nullptr;
}

CallPlan::CallPlan(const Shadow::Entry& e, std::span<const Value> args, bool grad_enabled) {
  if (!grad_enabled) return;
  for (const auto& d : e.schema->derivatives)
    for (const auto v : d.variables)
      if (wanted(args[v])) {
        node.emplace(e, args);
        return;
      }
}

// ---- forward
// ---------------------------------------------------------------------------------------------------------

FormulaNode::FormulaNode(Shadow& m, Ref<CallPlan> plan, std::span<const Value> args) : plan_(std::move(plan)) {
  sequence = m.next_sequence();
  module = m.recorder().module;
  site = m.recorder().site;
  for (const NodePlan::Edges& e : plan_->node->edges)
    for_each_tensor(args[e.argument], [&](const Tensor& t) { next.push_back(gradient_edge(m, t)); });
  for (const NodePlan::Kept& k : plan_->node->arguments_kept)
    for_each_tensor(args[k.what->index], [&](const Tensor& t) {
      // An in-place operator whose formula needs self: autograd keeps a clone of it.
      saved_.emplace_back(m, k.what->cloned && !k.list ? m.empty_like(t) : t, false);
    });
}

FormulaNode::~FormulaNode() = default;

std::string_view FormulaNode::name() const { return plan_->node->entry.name; }

void FormulaNode::save_results(Shadow& m, const Outputs& outputs) {
  plan_->node->complete(outputs);
  for (const NodePlan::Kept& k : plan_->node->results_kept)
    for_each_tensor(outputs[k.what->index], [&](const Tensor& t) { saved_.emplace_back(m, t, true); });
}

// ---- backward
// --------------------------------------------------------------------------------------------------------

FormulaNode::Held FormulaNode::unpack(Shadow& m) const {
  const NodePlan& plan = *plan_->node;
  Held held(plan.arguments_kept.size() + plan.results_kept.size());
  for (const auto* kept : {&plan.arguments_kept, &plan.results_kept}) {
    for (const NodePlan::Kept& k : *kept) {
      if (k.list) {
        ValueList l;
        for (std::uint32_t i = 0; i < k.count; ++i) l.emplace_back(saved_[k.first + i].unpack(m));
        held[k.place] = Value(std::move(l));
      } else if (saved_[k.first].defined()) {
        held[k.place] = Value(saved_[k.first].unpack(m));
      }
    }
  }
  return held;
}

Gradients FormulaNode::apply(Shadow& m, const Gradients& grads) {
  m.recorder().op = plan_->node->entry.text;
  // Locals of the node's apply(): what it unpacks lives until it returns.
  const Held held = unpack(m);
  Gradients out(next.size());
  if (std::none_of(grads.begin(), grads.end(), [](const Tensor& g) { return static_cast<bool>(g); })) return out;
  Outputs outputs;
  if (plan_->known) {
    Signature s(plan_.get(), m.mode());
    for (const Value& v : held) s.add(v);
    for (const Tensor& g : grads) s.add(g);
    outputs = m.repeatable(s, [&] { return differentiate(m, held, grads); });
  } else {
    outputs = differentiate(m, held, grads);
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::move(outputs[i]).take_tensor();
  return out;
}

Outputs FormulaNode::differentiate(Shadow& m, const Held& held, const Gradients& grads) const {
  const NodePlan& plan = *plan_->node;
  std::vector<Value> arguments = plan.arguments, results = plan.results;
  for (const auto* kept : {&plan.arguments_kept, &plan.results_kept})
    for (const NodePlan::Kept& k : *kept)
      if (!held[k.place].none()) (k.what->result ? results : arguments)[k.what->index] = held[k.place];
  const auto needs = [&](const NodePlan::Edges* e) {
    if (!e) return false;
    for (std::uint32_t i = 0; i < e->count; ++i)
      if (next[e->first + i].node) return true;
    return false;
  };
  Outputs out(next.size());
  for (const aten::Derivative& d : plan.entry.schema->derivatives) {
    std::uint32_t needed = 0;
    for (std::size_t v = 0; v < d.variables.size(); ++v)
      if (needs(plan.edges_of(d.variables[v]))) needed |= 1U << v;
    if (needed == 0) continue;
    Value result;
    try {
      result = m.formulas().evaluate(d.formula, {.arguments = arguments,
                                                 .results = results,
                                                 .gradients = std::span(grads.data(), grads.size()),
                                                 .needed = needed});
    } catch (const NotModelled& why) {
      // The gradient itself is certain: shaped as its input. What the formula makes besides is not.
      Bytes made;
      for (std::size_t v = 0; v < d.variables.size(); ++v) {
        const NodePlan::Edges* e = plan.edges_of(d.variables[v]);
        if ((needed >> v & 1U) == 0) continue;
        for (std::uint32_t i = 0; i < e->count; ++i) {
          const Edge& to = next[e->first + i];
          if (!to.node) continue;
          const InputMetadata& meta = to.node->inputs[to.input_nr];
          const Tensor gradient = m.empty(meta.sizes, meta.dtype);
          made += gradient->storage->bytes;
          out[e->first + i] = Value(gradient);
        }
      }
      m.note_generic(plan.entry.name + " (backward: " + why.what + ")", made);
      continue;
    }
    const auto put = [&](std::uint8_t argument, Value& v) {
      const NodePlan::Edges* e = plan.edges_of(argument);
      if (!e) return;
      if (v.is_list()) {
        ValueList& l = v.list();
        for (std::uint32_t i = 0; i < e->count && i < l.size(); ++i)
          if (next[e->first + i].node) out[e->first + i] = Value(std::move(l[i]).take_tensor());
      } else if (v.is_tensor() && e->count > 0) {
        out[e->first] = std::move(v);
      }
    };
    if (d.variables.size() == 1) {
      put(d.variables[0], result);
    } else if (result.is_list()) {
      for (std::size_t v = 0; v < d.variables.size() && v < result.list().size(); ++v)
        put(d.variables[v], result.list()[v]);
    }
  }
  return out;
}

bool FormulaNode::portray(Portrait& p) const {
  p.add(reinterpret_cast<std::uintptr_t>(plan_.get()));
  return std::all_of(saved_.begin(), saved_.end(), [&p](const SavedVariable& s) { return s.portray(p); });
}

void FormulaNode::release() {
  for (SavedVariable& s : saved_) s.reset();
}

}  // namespace headroom::shadow
