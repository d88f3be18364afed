#include "estimator/read/order.h"

#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

template <class Visit>
void for_each_value_read(const Node& node, const Visit& visit);

template <class Visit>
void for_each_value_read(const Graph& graph, const Visit& visit) {
  for (const Node& node : graph.nodes) for_each_value_read(node, visit);
  for (const GraphValue& output : graph.outputs) visit(output.value);
}

template <class Visit>
void for_each_value_read(const Node& node, const Visit& visit) {
  for (const ValueId input : node.inputs) visit(input);
  for (const Attribute& attribute : node.attributes) {
    if (attribute.graph != nullptr) for_each_value_read(*attribute.graph, visit);
    for (const Graph* graph : attribute.graphs) for_each_value_read(*graph, visit);
  }
}

/// Edges from a node to the nodes that read from it, by position; one entry for each value read.
struct Dependencies {
  std::vector<std::vector<std::size_t>> readers;
  std::vector<std::size_t> waiting_for;  ///< number of entries that lead to a node
};

Dependencies dependencies_of(std::span<const Node> nodes) {
  std::unordered_map<ValueId, std::size_t> maker;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const ValueId output : nodes[i].outputs)
      if (output.valid()) maker.emplace(output, i);
  Dependencies found{std::vector<std::vector<std::size_t>>(nodes.size()), std::vector<std::size_t>(nodes.size(), 0)};
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for_each_value_read(nodes[i], [&](ValueId value) {
      const auto made = maker.find(value);
      if (made == maker.end()) return;
      found.readers[made->second].push_back(i);
      ++found.waiting_for[i];
    });
  return found;
}

/// `waiting_for` holds what is left: every node with an entry above zero waits for another such node, or for itself.
Error cycle(std::span<const Node> nodes, const Dependencies& left, const std::string& file) {
  std::vector<std::size_t> waits_for(nodes.size(), nodes.size());
  std::size_t at = nodes.size();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (left.waiting_for[i] == 0) continue;
    at = i;
    for (const std::size_t reader : left.readers[i]) waits_for[reader] = i;
  }
  for (std::size_t steps = 0; steps < nodes.size(); ++steps) at = waits_for[at];  // now surely on the cycle
  constexpr std::size_t shown = 6;
  std::string path = label_of(nodes[at]);
  std::size_t length = 1;
  for (std::size_t next = waits_for[at]; next != at; next = waits_for[next], ++length)
    if (length < shown) path += " reads from " + label_of(nodes[next]);
  path += length > shown ? " reads from … (" + std::to_string(length) + " nodes in all)"
                         : " reads from " + label_of(nodes[at]);
  return bad_input("the graph has a cycle: " + path, file, "a graph must compute forward: mend these nodes' inputs");
}

}  // namespace

std::string label_of(const Node& node) {
  const std::string op = " (" + printable(node.op_type) + ")";
  return node.name.empty() ? "#" + std::to_string(node.index) + op : "'" + printable(node.name) + "'" + op;
}

void sort_topologically(std::span<Node> nodes, const std::string& file) {
  Dependencies left = dependencies_of(nodes);
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (left.waiting_for[i] == 0) ready.push(i);
  std::vector<Node> sorted;
  sorted.reserve(nodes.size());
  while (!ready.empty()) {
    const std::size_t i = ready.top();
    ready.pop();
    sorted.push_back(nodes[i]);
    for (const std::size_t reader : left.readers[i])
      if (--left.waiting_for[reader] == 0) ready.push(reader);
  }
  if (sorted.size() != nodes.size()) throw cycle(nodes, left, file);
  std::copy(sorted.begin(), sorted.end(), nodes.begin());
}

}  // namespace headroom
