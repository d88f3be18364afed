#include "estimator/recover/origins.h"

#include <algorithm>
#include <future>

#include "estimator/base/text.h"

namespace headroom::recovery {

namespace {

/// Last but one string of a Python list of strings; `rest` is everything up to and including it.
struct Innermost {
  std::string_view rest;
  std::string_view text;
};

Innermost last_but_one(std::string_view list) {
  const auto quote_before = [&](std::size_t end) {
    while (end > 0)
      if (const char c = list[--end]; c == '\'' || c == '"') return end;
    return std::string_view::npos;
  };
  const std::size_t last_end = quote_before(list.size());
  if (last_end == std::string_view::npos) return {};
  const std::size_t last_begin = quote_before(last_end);
  const std::size_t end = last_begin == std::string_view::npos ? last_begin : quote_before(last_begin);
  const std::size_t begin = end == std::string_view::npos ? end : quote_before(end);
  if (begin == std::string_view::npos) return {};
  return {list.substr(0, end + 1), list.substr(begin + 1, end - begin - 1)};
}

/// Scope in a TorchScript node name: all up to the last '/'.
std::string_view scope_in_name(std::string_view node_name) {
  const std::size_t slash = node_name.rfind('/');
  if (slash == std::string_view::npos) return {};
  std::string_view s = node_name.substr(0, slash);
  if (s.starts_with('/')) s.remove_prefix(1);
  return s;
}

/// "layer1/layer1.0/conv1" -> "layer1.0.conv1": a Sequential's children repeat its name.
std::string path_of_scope(std::string_view scope) {
  std::string path;
  std::string_view previous;
  for (const std::string_view segment : split(scope, '/')) {
    if (segment.empty()) continue;
    const bool repeats = !previous.empty() && segment.size() > previous.size() && segment.starts_with(previous) &&
                         segment[previous.size()] == '.';
    if (repeats) {
      path.resize(path.size() - previous.size());
    } else if (!path.empty()) {
      path += '.';
    }
    path += segment;
    previous = segment;
  }
  return path;
}

}  // namespace

Origins::Origins(const GraphView& graph, bool read_text) : graph_(graph), group_by_name_({&groups_}) {
  constexpr std::size_t worth_a_thread = 1000;
  const auto policy =
      graph.size() < worth_a_thread ? std::launch::deferred : std::launch::async | std::launch::deferred;
  std::future<void> scopes = std::async(policy, [this] {
    read_scopes();
    no_grad_blocks_ = NoGradBlocks(graph_);
  });
  group_of_.assign(graph_.size(), -1);
  if (read_text) read_groups();
  scopes.get();
  if (!has_text()) return;
  // Merged nodes (a Split of the optimiser) have no scope of their own: they run where their input was made.
  for (std::size_t n = 0; n < graph_.size(); ++n) {
    const auto index = static_cast<NodeIndex>(n);
    if (!graph_.node(index).metadata.name_scopes.empty()) continue;
    const auto readers = graph_.readers(graph_.output(index));
    if (!readers.empty()) scope_of_[n] = scope_of_[at(readers[0])];
  }
}

void Origins::read_groups() {
  groups_.reserve(graph_.size());
  std::string_view last_name;
  std::int32_t last_group = -1;
  for (std::size_t n = 0; n < graph_.size(); ++n) {
    const auto index = static_cast<NodeIndex>(n);
    const std::string_view text = graph_.node(index).metadata.fx_node;
    const std::string_view name = fx_name(text);
    if (name.empty()) continue;
    std::int32_t group = name == last_name ? last_group : group_by_name_.find(name);
    if (group < 0) {
      group = static_cast<std::int32_t>(groups_.size());
      FxGroup& g = groups_.emplace_back();
      if (auto fx = parse_fx_node(text)) {
        g.fx = std::move(*fx);
      } else {
        g.fx.name = name;
        g.opaque = true;
      }
      group_by_name_.insert(group);
    }
    last_name = name;
    last_group = group;
    FxGroup& g = groups_[static_cast<std::size_t>(group)];
    group_of_[n] = group;
    if (graph_.node(index).op_type == "Constant") continue;
    g.nodes.push_back(index);
    g.last = index;
  }
}

std::int32_t Origins::intern(std::string_view raw, std::string_view class_hierarchy, bool from_text) {
  const auto [it, fresh] = scope_by_raw_.try_emplace(raw, static_cast<std::int32_t>(scopes_.size()));
  if (fresh) {
    Scope s;
    s.raw = raw;
    s.class_name = last_but_one(class_hierarchy).text;
    if (from_text) {
      // `raw` ends with the innermost scope itself.
      const std::size_t quote = raw.size() > 1 ? raw.find_last_of("'\"", raw.size() - 2) : std::string_view::npos;
      s.path = quote == std::string_view::npos ? std::string_view{} : raw.substr(quote + 1, raw.size() - quote - 2);
      if (s.path == "_empty_nn_module_stack_from_metadata_hook") s.path = {};
    } else {
      paths_.push_back(path_of_scope(raw));
      s.path = paths_.back();
    }
    scopes_.push_back(s);
  }
  return it->second;
}

void Origins::read_scopes() {
  scope_of_.resize(graph_.size());
  std::string_view last_raw;
  std::int32_t last_scope = -1;
  for (std::size_t n = 0; n < graph_.size(); ++n) {
    const Node& node = graph_.node(static_cast<NodeIndex>(n));
    const bool from_text = !node.metadata.name_scopes.empty();
    const std::string_view raw = from_text ? last_but_one(node.metadata.name_scopes).rest : scope_in_name(node.name);
    if (last_scope < 0 || raw != last_raw) {
      last_scope = intern(raw, from_text ? node.metadata.class_hierarchy : std::string_view{}, from_text);
      last_raw = raw;
    }
    scope_of_[n] = last_scope;
  }
}

const FxGroup* Origins::group_of(NodeIndex n) const {
  if (n == no_node || group_of_[at(n)] < 0) return nullptr;
  return &groups_[static_cast<std::size_t>(group_of_[at(n)])];
}

const FxGroup* Origins::group_named(std::string_view name) const {
  const std::int32_t group = group_by_name_.find(name);
  return group < 0 ? nullptr : &groups_[static_cast<std::size_t>(group)];
}

const std::vector<std::string_view>& Origins::scopes(NodeIndex n) const {
  lists_.resize(scopes_.size());
  std::vector<std::string_view>& list = lists_[scope_number(n)];
  if (!list.empty()) return list;
  const std::string_view raw = scope(n).raw;
  if (raw.starts_with('[')) return list = parse_string_list(raw);
  list.push_back(raw.substr(0, 0));
  for (std::size_t slash = 0; !raw.empty() && slash != std::string_view::npos;) {
    slash = raw.find('/', slash + 1);
    list.push_back(raw.substr(0, slash));
  }
  return list;
}

bool Origins::inside(NodeIndex n, NodeIndex holder) const {
  const std::string_view inner = scope(n).raw, outer = scope(holder).raw;
  return inner.starts_with(outer) &&
         (inner.size() == outer.size() || outer.empty() || inner[outer.size()] == '/' || inner[outer.size()] == ',');
}

}  // namespace headroom::recovery
