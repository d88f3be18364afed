// Where each node comes from: its module path and class, the fx node it is part of, the Python lines that ran it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/recover/fx_text.h"
#include "estimator/recover/graph_view.h"
#include "estimator/recover/no_grad_blocks.h"
#include "estimator/recover/stack_trace.h"

namespace headroom::recovery {

/// ONNX nodes that stand for one fx node.
struct FxGroup {
  FxNode fx;
  boost::container::small_vector<NodeIndex, 4> nodes;
  NodeIndex last = no_node;
  bool opaque = false;  ///< the text could not be read: `fx.name` only
};

class Origins {
 public:
  /// `read_text`: as in RecoverOptions; without it there are no fx groups.
  Origins(const GraphView& graph, bool read_text);
  Origins(const Origins&) = delete;
  Origins& operator=(const Origins&) = delete;

  /// Some node carries the dynamo exporter's metadata.
  bool has_text() const { return !groups_.empty(); }
  std::vector<FxGroup>& groups() { return groups_; }
  const std::vector<FxGroup>& groups() const { return groups_; }
  /// The group a node belongs to; null for nodes without text.
  const FxGroup* group_of(NodeIndex n) const;
  const FxGroup* group_named(std::string_view fx_name) const;

  /// Module path of a node: "transformer.h.0.attn".
  std::string_view module(NodeIndex n) const { return scope(n).path; }
  /// Class of that module, "transformers.models.gpt2.modeling_gpt2.GPT2Attention"; "" where the file does not say.
  std::string_view module_class(NodeIndex n) const { return scope(n).class_name; }
  /// Whole text of the class hierarchy: to ask whether some enclosing module is of a library.
  std::string_view class_hierarchy(NodeIndex n) const { return graph_.node(n).metadata.class_hierarchy; }
  /// The module's scopes, outermost first, as the file names them; "" is the root.
  const std::vector<std::string_view>& scopes(NodeIndex n) const;
  /// Scopes are numbered from 0.
  std::size_t scope_count() const { return scopes_.size(); }
  std::size_t scope_number(NodeIndex n) const { return static_cast<std::size_t>(scope_of_[at(n)]); }
  /// The same scope (module call) made both nodes.
  bool same_scope(NodeIndex a, NodeIndex b) const { return scope_of_[at(a)] == scope_of_[at(b)]; }
  bool inside(NodeIndex n, NodeIndex scope_holder) const;
  /// Nothing flows back through what the node makes.
  bool in_no_grad_block(NodeIndex n) const {
    return n != no_node && has_text() && no_grad_blocks_.made(graph_.node(n).metadata.stack_trace);
  }
  /// Innermost source line that the file shows for a node; "" without stack traces.
  std::string_view source_line(NodeIndex n) const { return innermost_source(graph_.node(n).metadata.stack_trace); }
  /// Some frame's source line contains `text`.
  bool called_from(NodeIndex n, std::string_view text) const {
    return graph_.node(n).metadata.stack_trace.find(text) != std::string_view::npos;
  }

 private:
  struct Scope {
    std::string_view raw;
    std::string_view path;
    std::string_view class_name;
  };
  static std::size_t at(NodeIndex n) { return static_cast<std::size_t>(n); }
  const Scope& scope(NodeIndex n) const { return scopes_[scope_number(n)]; }
  void read_scopes();
  void read_groups();
  std::int32_t intern(std::string_view raw, std::string_view class_hierarchy, bool from_text);

  const GraphView& graph_;
  std::vector<FxGroup> groups_;
  std::vector<std::int32_t> group_of_;
  struct NameOfGroup {
    const std::vector<FxGroup>* groups;
    std::string_view operator()(std::int32_t g) const { return (*groups)[static_cast<std::size_t>(g)].fx.name; }
  };
  NameIndex<NameOfGroup> group_by_name_;
  std::vector<Scope> scopes_;
  std::vector<std::int32_t> scope_of_;
  std::unordered_map<std::string_view, std::int32_t> scope_by_raw_;
  std::deque<std::string> paths_;
  NoGradBlocks no_grad_blocks_;
  mutable std::vector<std::vector<std::string_view>> lists_;  ///< by scope, those asked for: what `scopes` returns
};

}  // namespace headroom::recovery
