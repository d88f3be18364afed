#include "estimator/shadow/formula_node.h"

#include <algorithm>
#include <utility>

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

}  // namespace

FormulaNode::FormulaNode(Shadow& m, const Shadow::Entry& entry, std::span<const Value> args) : entry_(entry) {
  sequence = m.next_sequence();
  module = m.recorder().module;
  site = m.recorder().site;
  const aten::OpSchema& s = *entry.schema;
  // Edges in the order of the schema's arguments (collect_next_edges).
  std::uint64_t variables = 0;
  for (const auto& d : s.derivatives)
    for (const auto v : d.variables) variables |= std::uint64_t{1} << v;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if ((variables >> i & 1U) == 0) continue;
    Edges e{static_cast<std::uint8_t>(i), static_cast<std::uint32_t>(next.size()), 0, args[i].is_list()};
    if (e.list) {
      for (const Value& v : args[i].list()) next.push_back(v.is_tensor() ? gradient_edge(m, v.tensor()) : Edge{});
    } else {
      next.push_back(args[i].is_tensor() ? gradient_edge(m, args[i].tensor()) : Edge{});
    }
    e.count = static_cast<std::uint32_t>(next.size()) - e.first;
    edges_.push_back(e);
  }
  arguments_.resize(args.size());
  for (std::size_t i = 0; i < args.size(); ++i)
    if (s.mentioned >> i & 1U) arguments_[i] = geometry(args[i]);
  kept_.reserve(s.saved.size());
  for (const aten::Saved& what : s.saved) {
    Kept& k = kept_.emplace_back();
    k.what = &what;
    if (what.result) continue;
    if (what.guards != 0) {
      bool keep = false;
      for (std::size_t i = 0; i < args.size(); ++i) keep = keep || ((what.guards >> i & 1U) != 0 && wanted(args[i]));
      if (!keep) continue;
    }
    const Value& v = args[what.index];
    if (v.is_tensor()) {
      if (what.cloned) {
        // An in-place operator whose formula needs self: autograd keeps a clone of it.
        k.tensor = SavedVariable(m, m.empty_like(v.tensor()), false);
      } else {
        k.tensor = SavedVariable(m, v.tensor(), false);
      }
    } else if (v.is_list()) {
      k.list = true;
      for (const Value& one : v.list()) k.tensors.emplace_back(m, one.tensor(), false);
    } else {
      k.number = v;
    }
  }
}

FormulaNode::~FormulaNode() = default;

void FormulaNode::save_results(Shadow& m, const Outputs& outputs) {
  const aten::OpSchema& s = *entry_.schema;
  results_.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (s.mentioned_results >> i & 1U) results_[i] = geometry(outputs[i]);
  for (Kept& k : kept_) {
    if (!k.what->result || k.what->index >= outputs.size()) continue;
    if (k.what->guards != 0) {
      bool keep = false;
      for (const Edges& e : edges_)
        if (k.what->guards >> e.argument & 1U)
          for (std::uint32_t i = 0; i < e.count; ++i) keep = keep || next[e.first + i].node;
      if (!keep) continue;
    }
    const Value& v = outputs[k.what->index];
    if (v.is_list()) {
      k.list = true;
      for (const Value& one : v.list()) k.tensors.emplace_back(m, one.tensor(), true);
    } else {
      k.tensor = SavedVariable(m, v.tensor(), true);
    }
  }
}

Gradients FormulaNode::apply(Shadow& m, const Gradients& grads) {
  const aten::OpSchema& s = *entry_.schema;
  m.recorder().op = entry_.text;
  // Locals of the node's apply(): what it unpacks lives until it returns. A node runs once, so its copies are taken.
  std::vector<Value> arguments = std::move(arguments_), results = std::move(results_);
  for (const Kept& k : kept_) {
    auto& to = k.what->result ? results : arguments;
    if (k.what->index >= to.size()) to.resize(k.what->index + 1u);
    Value v = k.number;
    if (k.list) {
      ValueList l;
      for (const SavedVariable& t : k.tensors) l.emplace_back(t.unpack(m));
      v = Value(std::move(l));
    } else if (k.tensor.defined()) {
      v = Value(k.tensor.unpack(m));
    } else if (v.none()) {
      continue;  // not saved: its geometry stays
    }
    to[k.what->index] = std::move(v);
  }
  Gradients out(next.size());
  const bool any = std::any_of(grads.begin(), grads.end(), [](const Tensor& g) { return static_cast<bool>(g); });
  if (!any) return out;
  const auto edges_of = [&](std::uint8_t argument) -> const Edges* {
    for (const Edges& e : edges_)
      if (e.argument == argument) return &e;
    return nullptr;
  };
  const auto needs = [&](const Edges* e) {
    if (!e) return false;
    for (std::uint32_t i = 0; i < e->count; ++i)
      if (next[e->first + i].node) return true;
    return false;
  };
  for (const aten::Derivative& d : s.derivatives) {
    std::uint32_t needed = 0;
    for (std::size_t v = 0; v < d.variables.size(); ++v)
      if (needs(edges_of(d.variables[v]))) needed |= 1U << v;
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
        const Edges* e = edges_of(d.variables[v]);
        if ((needed >> v & 1U) == 0) continue;
        for (std::uint32_t i = 0; i < e->count; ++i) {
          const Edge& to = next[e->first + i];
          if (!to.node) continue;
          const InputMetadata& meta = to.node->inputs[to.input_nr];
          out[e->first + i] = m.empty(meta.sizes, meta.dtype);
          made += out[e->first + i]->storage->bytes;
        }
      }
      m.note_generic(entry_.name + " (backward: " + why.what + ")", made);
      continue;
    }
    const auto put = [&](std::uint8_t argument, Value& v) {
      const Edges* e = edges_of(argument);
      if (!e) return;
      if (v.is_list()) {
        ValueList& l = v.list();
        for (std::uint32_t i = 0; i < e->count && i < l.size(); ++i)
          if (next[e->first + i].node) out[e->first + i] = std::move(l[i]).take_tensor();
      } else if (v.is_tensor() && e->count > 0) {
        out[e->first] = std::move(v).take_tensor();
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

void FormulaNode::release() {
  for (Kept& k : kept_) {
    k.tensor.reset();
    for (SavedVariable& t : k.tensors) t.reset();
  }
}

}  // namespace headroom::shadow
