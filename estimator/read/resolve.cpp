#include "estimator/read/resolve.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/read/order.h"

namespace headroom {
namespace {

constexpr const char* damaged = "the file is damaged: export it again";

struct FunctionKey {
  std::string_view domain;
  std::string_view name;
  std::string_view overload;
  friend bool operator==(const FunctionKey&, const FunctionKey&) = default;
};

struct FunctionKeyHash {
  std::size_t operator()(const FunctionKey& key) const {
    const std::hash<std::string_view> hash;
    return (hash(key.domain) * 31 + hash(key.name)) * 31 + hash(key.overload);
  }
};

/// One call of a model-local function, while its body is inlined. The main graph is a call without function.
struct Call {
  const FunctionDraft* function = nullptr;
  const Call* caller = nullptr;
  std::string_view scope;  ///< put in front of the body's names
  std::span<const Attribute> attributes;
  NodeMetadata metadata;
  int depth = 0;  ///< of calls and sub-graphs around the body
};

bool has_any(const NodeMetadata& m) {
  return !(m.fx_node.empty() && m.name_scopes.empty() && m.class_hierarchy.empty() && m.stack_trace.empty() &&
           m.rewriter_rule.empty());
}

std::string label_of(const FunctionDraft& function) {
  std::string label = "'";
  if (!function.domain.empty()) label += printable(function.domain) + "::";
  label += printable(function.name);
  if (!function.overload.empty()) label += ":" + printable(function.overload);
  return label + "'";
}

class Resolver {
 public:
  Resolver(const ModelDraft& draft, const Names& names, const std::string& file, const ReadLimits& limits,
           CountedMemory& heap, Arena& arena, Diagnostics& diagnostics)
      : names_(names), file_(file), limits_(limits), arena_(arena), diagnostics_(diagnostics), heap_(heap) {
    for (const OpsetImport& import : draft.opsets)
      if (import.domain.empty()) opset_ = import.version;
    for (const FunctionDraft& function : draft.functions)
      if (!functions_.emplace(FunctionKey{function.domain, function.name, function.overload}, &function).second)
        throw bad_input("two functions are named " + label_of(function), file_, damaged);
    bindings_.resize(names.size());
  }

  Resolved resolve(const GraphDraft& draft) {
    if (draft.outputs.empty()) throw bad_input("the graph has no output", file_, damaged);
    const Graph* graph = this->graph(draft, Call{});
    return {graph, std::move(value_names_)};
  }

 private:
  struct Binding {
    ValueId value;
    std::uint32_t scope = 0;
    bool promised = false;  ///< an output of the function around, not made yet
  };

  /// Names bound in a scope are forgotten, and those they hid come back, when it ends.
  class Scope {
   public:
    enum class Sees { outer_names, only_its_own };
    Scope(Resolver& r, Sees sees)
        : r_(r), hidden_(r.hidden_.size()), scope_(r.scope_), first_visible_(r.first_visible_) {
      r.scope_ = ++r.last_scope_;
      if (sees == Sees::only_its_own) r.first_visible_ = r.scope_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      for (; r_.hidden_.size() > hidden_; r_.hidden_.pop_back())
        r_.bindings_[r_.hidden_.back().first.at()] = r_.hidden_.back().second;
      r_.scope_ = scope_;
      r_.first_visible_ = first_visible_;
    }

   private:
    Resolver& r_;
    std::size_t hidden_;
    std::uint32_t scope_;
    std::uint32_t first_visible_;
  };

  const Graph* graph(const GraphDraft& draft, const Call& call);
  void declare_initializers(const GraphDraft& draft, const Call& call, Graph& graph);
  void declare_inputs(const GraphDraft& draft, const Call& call, Graph& graph);
  void declare_outputs(NodeDrafts nodes, const Call& call);
  void add_nodes(NodeDrafts drafts, const Call& call, Gathered<Node>& nodes);
  void inline_function(const FunctionDraft& function, const Node& node, const Call& call, Gathered<Node>& nodes);
  std::span<const Attribute> attributes(const AttributeDrafts& drafts, const NodeDraft* node, const Call& call);
  std::span<const Attribute> with_defaults(const FunctionDraft& function, std::span<const Attribute> given,
                                           const Call& call);

  bool bound_here(Symbol s) const { return bindings_[s.at()].scope == scope_; }
  void bind(Symbol s, ValueId value, bool promised = false) {
    hidden_.emplace_back(s, bindings_[s.at()]);
    bindings_[s.at()] = {value, scope_, promised};
  }
  ValueId new_value(Symbol s, const Call& call) {
    value_names_.push_back(scoped(call.scope, names_.text_of(s)));
    ready_.push_back(false);
    return ValueId(value_names_.size() - 1);
  }
  bool visible(Symbol s) const { return bindings_[s.at()].scope >= first_visible_; }
  ValueId read(Symbol s, const NodeDraft& reader, const Call& call);
  bool named_like_a_parameter(Symbol s, const NodeDraft& maker, const Call& call);
  /// What the node that makes `s` makes.
  ValueId made(Symbol s) const;
  std::string_view scoped(std::string_view scope, std::string_view name);
  const FunctionDraft* find_function(const NodeDraft& node) const;
  void spend(std::size_t steps);

  Error unknown_value(Symbol s, const std::string& what) const;
  Error made_twice(Symbol s, const NodeDraft& second, NodeDrafts nodes) const;
  Error recursion(const FunctionDraft& function, const Call& call) const;
  std::string where(const NodeDraft& node, const Call& call) const;
  void note(std::string code, Severity severity, std::string message) {
    constexpr std::size_t enough = 100;
    if (diagnostics_.size() < enough) diagnostics_.push_back({std::move(code), severity, {}, std::move(message)});
  }

  const Names& names_;
  const std::string& file_;
  const ReadLimits& limits_;
  Arena& arena_;
  Diagnostics& diagnostics_;
  CountedMemory& heap_;
  std::int64_t opset_ = 0;
  std::unordered_map<FunctionKey, const FunctionDraft*, FunctionKeyHash> functions_;

  std::vector<std::string_view> value_names_;
  std::pmr::vector<char> ready_{&heap_};  // by value: its maker stands before the node at hand
  bool out_of_order_ = false;
  std::int64_t nodes_read_ = 0;
  std::size_t steps_spent_ = 0;
  std::int32_t next_index_ = 0;

  std::pmr::vector<Binding> bindings_{&heap_};                // by symbol
  std::unordered_map<std::size_t, ValueId> like_parameters_;  // by symbol: a node's value with a parameter's name
  std::size_t initializers_read_ = 0;                         // values of the graph that are initializers
  std::pmr::vector<std::pair<Symbol, Binding>> hidden_{&heap_};
  std::uint32_t last_scope_ = 0;
  std::uint32_t scope_ = 0;
  std::uint32_t first_visible_ = 1;

  // Lists in the making (see Gathered).
  std::pmr::vector<Node> nodes_{&heap_};
  std::pmr::vector<Attribute> attributes_{&heap_};
  std::pmr::vector<const Graph*> graphs_{&heap_};
  std::pmr::vector<ValueId> values_{&heap_};
  std::pmr::vector<GraphValue> inputs_{&heap_};
  std::pmr::vector<GraphValue> defaulted_inputs_{&heap_};
  std::pmr::vector<GraphValue> outputs_{&heap_};
  std::pmr::vector<Initializer> initializers_{&heap_};
};

const Graph* Resolver::graph(const GraphDraft& draft, const Call& call) {
  Graph graph;
  graph.name = draft.name;
  const Scope scope(*this, Scope::Sees::outer_names);
  declare_initializers(draft, call, graph);
  if (scope_ == 1) initializers_read_ = value_names_.size();
  declare_inputs(draft, call, graph);
  declare_outputs(draft.nodes, call);

  Gathered nodes(nodes_);
  nodes_.reserve(nodes_.size() + draft.nodes.size());
  add_nodes(draft.nodes, call, nodes);
  if (out_of_order_) sort_topologically(nodes.items(), file_);
  graph.nodes = nodes.kept_in(arena_);

  Gathered outputs(outputs_);
  for (const ValueDraft& output : draft.outputs) {
    if (!output.name.valid() || !visible(output.name)) throw unknown_value(output.name, "the graph has the output");
    outputs.add({made(output.name), output.type});
  }
  graph.outputs = outputs.kept_in(arena_);
  return copied(graph, arena_);
}

void Resolver::declare_initializers(const GraphDraft& draft, const Call& call, Graph& graph) {
  Gathered initializers(initializers_);
  for (const InitializerDraft& i : draft.initializers) {
    if (!i.name.valid()) throw bad_input("an initializer has no name", file_, damaged);
    if (bound_here(i.name)) {
      note("initializer-twice", Severity::warning,
           "initializer '" + printable(names_.text_of(i.name)) + "' is in the file twice; the first one counts");
      continue;
    }
    Initializer initializer = i.initializer;
    initializer.value = new_value(i.name, call);
    ready_.back() = true;
    bind(i.name, initializer.value);
    initializers.add(initializer);
  }
  graph.initializers = initializers.kept_in(arena_);
}

void Resolver::declare_inputs(const GraphDraft& draft, const Call& call, Graph& graph) {
  Gathered inputs(inputs_);
  Gathered defaulted(defaulted_inputs_);
  const std::size_t first_input = value_names_.size();  // values below are initializers
  for (const ValueDraft& input : draft.inputs) {
    if (!input.name.valid()) throw bad_input("a graph input has no name", file_, damaged);
    if (!bound_here(input.name)) {
      const ValueId value = new_value(input.name, call);
      ready_.back() = true;
      bind(input.name, value);
      inputs.add({value, input.type});
    } else if (const ValueId value = bindings_[input.name.at()].value; value.at() < first_input) {
      defaulted.add({value, input.type});
    } else {
      throw bad_input("two graph inputs are named '" + printable(names_.text_of(input.name)) + "'", file_,
                      "give each its own name");
    }
  }
  graph.inputs = inputs.kept_in(arena_);
  graph.defaulted_inputs = defaulted.kept_in(arena_);
}

/// Before any node is read: a node may stand before the one that makes its input.
void Resolver::declare_outputs(NodeDrafts nodes, const Call& call) {
  for (const NodeDraft* node : nodes)
    for (const Symbol output : node->outputs) {
      if (!output.valid()) continue;
      if (!bound_here(output))
        bind(output, new_value(output, call));
      else if (!std::exchange(bindings_[output.at()].promised, false) && !named_like_a_parameter(output, *node, call))
        throw made_twice(output, *node, nodes);
    }
}

/// torch.export names a node "mean" beside the buffer "mean", which it calls b_mean; the exporter writes both as
/// "mean".
bool Resolver::named_like_a_parameter(Symbol s, const NodeDraft& maker, const Call& call) {
  if (maker.metadata.fx_node.empty() || call.function != nullptr || bindings_[s.at()].value.at() >= initializers_read_)
    return false;
  const auto [it, fresh] = like_parameters_.try_emplace(s.at());
  if (fresh) it->second = new_value(s, call);
  return fresh;
}

/// `text` refers to %name.
bool refers_to(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (at > 0 && text[at - 1] == '%' &&
        (end == text.size() || std::string_view(",)] ").find(text[end]) != std::string_view::npos))
      return true;
  }
  return false;
}

ValueId Resolver::made(Symbol s) const {
  const auto it = like_parameters_.find(s.at());
  return it == like_parameters_.end() ? bindings_[s.at()].value : it->second;
}

ValueId Resolver::read(Symbol s, const NodeDraft& reader, const Call& call) {
  if (!s.valid()) return {};
  if (!visible(s)) throw unknown_value(s, "node " + where(reader, call) + " reads");
  const bool of_node = !like_parameters_.empty() && refers_to(reader.metadata.fx_node, names_.text_of(s));
  const ValueId value = of_node ? made(s) : bindings_[s.at()].value;
  if (value.valid() && !ready_[value.at()]) out_of_order_ = true;
  return value;
}

void Resolver::add_nodes(NodeDrafts drafts, const Call& call, Gathered<Node>& nodes) {
  for (const NodeDraft* each : drafts) {
    const NodeDraft& draft = *each;
    if (++nodes_read_ > limits_.max_nodes_after_inlining)
      throw bad_input(
          "inlining its functions makes more than " + std::to_string(limits_.max_nodes_after_inlining) + " nodes",
          file_, "inline and simplify the functions before, for example with onnxscript.optimizer");
    if (draft.op_type.empty())
      throw bad_input("a node has no operator", file_ + ", node " + where(draft, call), damaged);
    Node node;
    node.index = next_index_;
    node.op_type = draft.op_type;
    node.domain = draft.domain;
    node.name = call.function != nullptr && draft.name.empty() ? scoped(call.scope, draft.op_type)
                                                               : scoped(call.scope, draft.name);
    node.metadata = has_any(draft.metadata) ? draft.metadata : call.metadata;
    {
      Gathered inputs(values_);
      for (const Symbol input : draft.inputs) inputs.add(read(input, draft, call));
      node.inputs = inputs.kept_in(arena_);
    }
    {
      Gathered outputs(values_);
      for (const Symbol output : draft.outputs) outputs.add(output.valid() ? made(output) : ValueId{});
      node.outputs = outputs.kept_in(arena_);
    }
    const FunctionDraft* function = find_function(draft);
    if (function == nullptr) ++next_index_;
    node.attributes = attributes(draft.attributes, &draft, call);
    if (function != nullptr)
      inline_function(*function, node, call, nodes);
    else
      nodes.add(node);
    for (const ValueId output : node.outputs)
      if (output.valid()) ready_[output.at()] = true;
  }
}

void Resolver::inline_function(const FunctionDraft& function, const Node& node, const Call& call,
                               Gathered<Node>& nodes) {
  for (const Call* c = &call; c != nullptr; c = c->caller)
    if (c->function == &function) throw recursion(function, call);
  const std::string site = file_ + ", node " + headroom::label_of(node);
  if (call.depth >= limits_.max_depth)
    throw bad_input("functions call each other more than " + std::to_string(limits_.max_depth) + " levels deep", site,
                    "no exporter nests like this: the file is damaged");
  if (node.inputs.size() > function.inputs.size() || node.outputs.size() > function.outputs.size())
    throw bad_input("function " + label_of(function) + " has " + std::to_string(function.inputs.size()) +
                        " inputs and " + std::to_string(function.outputs.size()) + " outputs, the node gives " +
                        std::to_string(node.inputs.size()) + " and " + std::to_string(node.outputs.size()),
                    site, damaged);
  if (function.standard_opset != 0 && function.standard_opset != opset_)
    note("function-opset", Severity::info,
         "function " + label_of(function) + " is written for opset " + std::to_string(function.standard_opset) +
             ", the graph for " + std::to_string(opset_) + "; read as the graph's");
  spend(function.inputs.size() + function.outputs.size());

  Call inner{&function, &call, {}, with_defaults(function, node.attributes, call), node.metadata, call.depth + 1};
  inner.scope = !node.name.empty() ? node.name : scoped(call.scope, node.op_type);

  const Scope scope(*this, Scope::Sees::only_its_own);
  for (std::size_t i = 0; i < function.inputs.size(); ++i)
    if (function.inputs[i].valid()) bind(function.inputs[i], node.input(i));
  // An output that is an input of the function, or another output again, has no maker of its own: a copy makes it.
  std::vector<std::pair<Symbol, ValueId>> copies;
  for (std::size_t i = 0; i < function.outputs.size(); ++i) {
    const Symbol formal = function.outputs[i];
    const ValueId actual = node.output(i);
    if (!formal.valid() || !actual.valid()) continue;
    if (bound_here(formal) && !bindings_[formal.at()].promised && !bindings_[formal.at()].value.valid())
      throw bad_input("function " + label_of(function) + " passes on its input '" + printable(names_.text_of(formal)) +
                          "', which the node does not give",
                      site, damaged);
    if (bound_here(formal))
      copies.emplace_back(formal, actual);
    else
      bind(formal, actual, true);
  }
  declare_outputs(function.nodes, inner);
  for (const Symbol formal : function.outputs)
    if (formal.valid() && bound_here(formal) && bindings_[formal.at()].promised)
      throw bad_input(
          "function " + label_of(function) + " never makes its output '" + printable(names_.text_of(formal)) + "'",
          site, damaged);
  add_nodes(function.nodes, inner, nodes);
  for (const auto& [formal, actual] : copies) {
    const std::array<ValueId, 1> from = {bindings_[formal.at()].value};
    const std::array<ValueId, 1> to = {actual};
    Node copy;
    copy.name = inner.scope;
    copy.op_type = "Identity";
    copy.inputs = copied(std::span<const ValueId>(from), arena_);
    copy.outputs = copied(std::span<const ValueId>(to), arena_);
    copy.metadata = node.metadata;
    copy.index = next_index_++;
    nodes.add(copy);
  }
}

std::span<const Attribute> Resolver::attributes(const AttributeDrafts& drafts, const NodeDraft* node,
                                                const Call& call) {
  if (drafts.deferred.empty()) return drafts.attributes;
  Gathered list(attributes_);
  auto deferred = drafts.deferred.begin();
  for (std::size_t i = 0; i < drafts.attributes.size(); ++i) {
    Attribute attribute = drafts.attributes[i];
    if (deferred == drafts.deferred.end() || deferred->position != i) {
      list.add(attribute);
      continue;
    }
    const DeferredAttribute& later = *deferred++;
    if (!later.reference.empty()) {
      if (call.function == nullptr)
        throw bad_input("attribute '" + printable(attribute.name) + "' refers to a function's attribute '" +
                            printable(later.reference) + "', but stands in no function",
                        file_ + (node != nullptr ? ", node " + where(*node, call) : std::string()), damaged);
      spend(call.attributes.size());
      for (const Attribute& given : call.attributes)
        if (given.name == later.reference) {
          const std::string_view name = attribute.name;
          attribute = given;
          attribute.name = name;
          list.add(attribute);
          break;
        }
      continue;  // neither given nor with a default: absent
    }
    if (call.depth >= limits_.max_depth)
      throw bad_input(
          "sub-graphs and functions are nested more than " + std::to_string(limits_.max_depth) + " levels deep", file_,
          "no exporter nests like this: the file is damaged");
    Call inside = call;
    ++inside.depth;
    Gathered graphs(graphs_);
    for (const GraphDraft* graph_draft : later.graphs) graphs.add(graph(*graph_draft, inside));
    if (attribute.kind == Attribute::Kind::graph)
      attribute.graph = graphs.items().back();
    else
      attribute.graphs = graphs.kept_in(arena_);
    list.add(attribute);
  }
  return list.kept_in(arena_);
}

std::span<const Attribute> Resolver::with_defaults(const FunctionDraft& function, std::span<const Attribute> given,
                                                   const Call& call) {
  const std::span<const Attribute> defaults = attributes(function.defaults, nullptr, call);
  if (defaults.empty()) return given;
  Gathered list(attributes_);
  for (const Attribute& attribute : given) list.add(attribute);
  for (const Attribute& attribute : defaults)
    list.add(attribute);  // found only where none is given: search is in order
  return list.kept_in(arena_);
}

std::string_view Resolver::scoped(std::string_view scope, std::string_view name) {
  if (scope.empty() || name.empty()) return name;
  const bool slash = !name.starts_with('/');
  auto* text = static_cast<char*>(arena_.allocate(scope.size() + slash + name.size(), 1));
  char* end = std::copy(scope.begin(), scope.end(), text);
  if (slash) *end++ = '/';
  end = std::copy(name.begin(), name.end(), end);
  return {text, static_cast<std::size_t>(end - text)};
}

const FunctionDraft* Resolver::find_function(const NodeDraft& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find({node.domain, node.op_type, node.overload});
  return found == functions_.end() ? nullptr : found->second;
}

/// Inlining can multiply work that makes no node and takes no memory; this bounds it (below a second).
void Resolver::spend(std::size_t steps) {
  constexpr std::size_t limit = 50'000'000;
  steps_spent_ += steps;
  if (steps_spent_ > limit) throw bad_input("inlining its functions takes too long", file_, damaged);
}

Error Resolver::unknown_value(Symbol s, const std::string& what) const {
  if (!s.valid()) return bad_input("a graph output has no name", file_, damaged);
  constexpr std::size_t enough = 5'000;
  std::vector<std::string_view> candidates;
  for (std::size_t i = 0; i < names_.size() && candidates.size() < enough; ++i)
    if (const Symbol candidate(i); bindings_[i].scope != 0 && visible(candidate))
      candidates.push_back(names_.text_of(candidate));
  const std::string_view name = names_.text_of(s);
  const std::string_view near = name.size() > 200 ? std::string_view{} : nearest(name, candidates);
  return bad_input(what + " '" + printable(name) + "', which no node, input or initializer provides", file_,
                   near.empty() ? "the file is damaged, or was cut out of a larger graph"
                                : "did you mean '" + printable(near) + "'?");
}

Error Resolver::made_twice(Symbol s, const NodeDraft& second, NodeDrafts nodes) const {
  const std::string name = "'" + printable(names_.text_of(s)) + "'";
  const std::string hint = "every value has one maker: rename one of them";
  for (const NodeDraft* node : nodes) {
    for (const Symbol output : node->outputs)
      if (output == s && node != &second)
        return bad_input("two nodes make the value " + name + ": " + where(*node, {}) + " and " + where(second, {}),
                         file_, hint);
    if (node == &second) break;
  }
  return bad_input("node " + where(second, {}) + " makes the value " + name +
                       ", which is an input, an initializer or another output already",
                   file_, hint);
}

Error Resolver::recursion(const FunctionDraft& function, const Call& call) const {
  std::string path = label_of(function);
  for (const Call* c = &call; c != nullptr && c->function != nullptr; c = c->caller) {
    path = label_of(*c->function) + " → " + path;
    if (c->function == &function) break;
  }
  return bad_input("a function calls itself: " + path, file_, "functions of a model cannot be recursive");
}

std::string Resolver::where(const NodeDraft& draft, const Call& call) const {
  Node node;
  node.name = draft.name;
  node.op_type = draft.op_type;
  node.index = next_index_;
  std::string label = headroom::label_of(node);
  if (call.function != nullptr) label += " of function " + label_of(*call.function);
  return label;
}

}  // namespace

Resolved resolve(const ModelDraft& draft, const Names& names, const std::string& file, const ReadLimits& limits,
                 CountedMemory& heap, Arena& arena, Diagnostics& diagnostics) {
  return Resolver(draft, names, file, limits, heap, arena, diagnostics).resolve(*draft.graph);
}

}  // namespace headroom
