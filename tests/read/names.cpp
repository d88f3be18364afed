// Which value a name means: scopes, shadowing, and names that mean none or two.
#include <set>

#include "tests/read/build.h"

namespace headroom::test {
namespace {

onnx::NodeProto if_node(const onnx::GraphProto& then_branch, const onnx::GraphProto& else_branch,
                        const std::string& output = "y") {
  return with(node("If", {"c"}, {output}, "if"),
              {graph_attribute("then_branch", then_branch), graph_attribute("else_branch", else_branch)});
}

TEST_CASE("a sub-graph sees outer values; what it makes is its own") {
  const auto g = graph({node("Neg", {"x"}, {"n"}), if_node(graph({node("Abs", {"n"}, {"t"})}, {}, {"t"}),
                                                           graph({node("Relu", {"n"}, {"t"})}, {}, {"t"}))},
                       {"x", "c"}, {"y"});
  const Read r = read(model(g));
  const Node& a = r.node(1).graph("then_branch")->nodes[0];
  const Node& b = r.node(1).graph("else_branch")->nodes[0];
  CHECK(a.input(0) == r.node(0).output(0));
  CHECK(a.output(0) != b.output(0));  // the same name in two bodies: two values
  CHECK(r.node(1).graph("else_branch")->outputs[0].value == b.output(0));
}

TEST_CASE("an inner name hides the outer one, and only inside") {
  auto body = graph({node("Abs", {"n"}, {"t"})}, {"n"}, {"t"});
  const auto g = graph({node("Neg", {"x"}, {"n"}), if_node(body, graph({}, {}, {"n"})), node("Relu", {"n"}, {"z"})},
                       {"x", "c"}, {"z"});
  const Read r = read(model(g));
  const Graph& then_branch = *r.node(1).graph("then_branch");
  CHECK(then_branch.nodes[0].input(0) == then_branch.inputs[0].value);
  CHECK(then_branch.inputs[0].value != r.node(0).output(0));
  CHECK(r.node(1).graph("else_branch")->outputs[0].value == r.node(0).output(0));
  CHECK(r.node(2).input(0) == r.node(0).output(0));
}

TEST_CASE("initializers of a sub-graph") {
  auto body = graph({node("Add", {"x", "w"}, {"t"})}, {}, {"t"});
  *body.add_initializer() = tensor("w", {4});
  const Read r = read(model(graph({if_node(body, body)}, {"x", "c"}, {"y"})));
  const Graph& a = *r.node(0).graph("then_branch");
  const Graph& b = *r.node(0).graph("else_branch");
  CHECK(a.nodes[0].input(1) == a.initializers[0].value);
  CHECK(a.initializers[0].value != b.initializers[0].value);
}

TEST_CASE("a value of a body is not seen outside") {
  const auto body = graph({node("Abs", {"x"}, {"inner"})}, {}, {"inner"});
  const auto g = graph({if_node(body, body), node("Neg", {"inner"}, {"z"}, "last")}, {"x", "c"}, {"z"});
  CHECK(contains(failure(model(g)), "'last' (Neg) reads 'inner'"));
}

TEST_CASE("a value that nothing provides: the node, its operator and a near name") {
  const auto g = graph({node("Conv", {"input", "w"}, {"conv_out"}), node("Relu", {"conv_aut"}, {"y"}, "/act")},
                       {"input", "w"}, {"y"});
  const std::string error = failure(model(g));
  CHECK(contains(error, "'/act' (Relu)"));
  CHECK(contains(error, "'conv_aut'"));
  CHECK(contains(error, "did you mean 'conv_out'?"));
  CHECK(contains(failure(model(graph({node("Relu", {"x"}, {"y"})}, {"x"}, {"nothing_like_it"}))),
                 "the graph has the output 'nothing_like_it'"));
}

TEST_CASE("a node without a name is told by its position") {
  CHECK(contains(failure(model(graph({node("Abs", {"x"}, {"a"}), node("Relu", {"zzzzzzzz"}, {"y"})}, {"x"}, {"y"}))),
                 "node #1 (Relu) reads 'zzzzzzzz'"));
}

TEST_CASE("two makers of one name") {
  CHECK(contains(failure(model(graph({node("Abs", {"x"}, {"y"}, "a"), node("Neg", {"x"}, {"y"}, "b")}, {"x"}, {"y"}))),
                 "two nodes make the value 'y': 'a' (Abs) and 'b' (Neg)"));
  CHECK(contains(failure(model(graph({node("Abs", {"x"}, {"x"}, "a")}, {"x"}, {"x"}))),
                 "'a' (Abs) makes the value 'x', which is an input"));
  CHECK(contains(failure(model(graph({node("Split", {"x"}, {"y", "y"}, "a")}, {"x"}, {"y"}))), "another output"));
  auto g = graph({node("Abs", {"x"}, {"w"}, "a")}, {"x"}, {"w"});
  *g.add_initializer() = tensor("w", {4});
  CHECK(contains(failure(model(g)), "'a' (Abs) makes the value 'w'"));
  CHECK(contains(failure(model(graph({node("Abs", {"x"}, {"y"})}, {"x", "x"}, {"y"}))), "two graph inputs"));
}

TEST_CASE("missing names") {
  CHECK(contains(failure(model(graph({node("", {"x"}, {"y"}, "a")}, {"x"}, {"y"}))), "no operator"));
  CHECK(contains(failure(model(graph({node("Abs", {"x"}, {"y"})}, {""}, {"y"}))), "input has no name"));
  CHECK(contains(failure(model(graph({node("Abs", {"x"}, {"y"})}, {"x"}, {""}))), "output has no name"));
  CHECK(contains(failure(model(graph({node("Abs", {"x"}, {"y"})}, {"x"}, {}))), "no output"));
}

TEST_CASE("many names: every value is a number of its own") {
  std::vector<onnx::NodeProto> nodes;
  for (int i = 0; i < 5000; ++i)
    nodes.push_back(node("Abs", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)}, "n"));
  const Read r = read(model(graph(nodes, {"v0"}, {"v5000"})));
  std::set<ValueId> values;
  for (const Node& n : r.graph().nodes) values.insert(n.output(0));
  CHECK(values.size() == 5000);
  for (std::size_t i = 1; i < 5000; ++i) CHECK(r.node(i).input(0) == r.node(i - 1).output(0));
  CHECK(r.model.name_of(r.node(4321).output(0)) == "v4322");
}

}  // namespace
}  // namespace headroom::test
