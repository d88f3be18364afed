// Topological order.
#include "tests/read/build.h"

namespace headroom::test {
namespace {

std::string names_of(const Graph& g) {
  std::string out;
  for (const Node& n : g.nodes) out += std::string(n.name) + " ";
  return out;
}

TEST_CASE("a sorted file is left as it is") {
  const auto g =
      graph({node("Abs", {"x"}, {"a"}, "1"), node("Abs", {"x"}, {"b"}, "2"), node("Add", {"b", "a"}, {"y"}, "3")},
            {"x"}, {"y"});
  CHECK(names_of(read(model(g)).graph()) == "1 2 3 ");
}

TEST_CASE("an unsorted one is sorted, what is free keeps its place") {
  const auto g = graph({node("Add", {"b", "a"}, {"y"}, "1"), node("Abs", {"x"}, {"a"}, "2"),
                        node("Abs", {"a"}, {"b"}, "3"), node("Neg", {"x"}, {"z"}, "4")},
                       {"x"}, {"y", "z"});
  const Read r = read(model(g));
  CHECK(names_of(r.graph()) == "2 3 1 4 ");
  CHECK(r.node(0).index == 1);  // position in the file
  CHECK(r.node(2).index == 0);
}

TEST_CASE("what a body reads counts for its node, and bodies are sorted too") {
  const auto body = graph({node("Add", {"t", "late"}, {"u"}, "b1"), node("Abs", {"late"}, {"t"}, "b2")}, {}, {"u"});
  const auto branch = with(node("If", {"c"}, {"y"}, "1"), {graph_attribute("then_branch", body),
                                                           graph_attribute("else_branch", graph({}, {}, {"later"}))});
  const auto g =
      graph({branch, node("Abs", {"x"}, {"late"}, "2"), node("Neg", {"x"}, {"later"}, "3")}, {"x", "c"}, {"y"});
  const Read r = read(model(g));
  CHECK(names_of(r.graph()) == "2 3 1 ");
  CHECK(names_of(*r.node(2).graph("then_branch")) == "b2 b1 ");
}

TEST_CASE("a cycle names its nodes") {
  const auto g =
      graph({node("Abs", {"x"}, {"a"}, "free"), node("Add", {"a", "d"}, {"b"}, "one"), node("Neg", {"b"}, {"c"}, "two"),
             node("Relu", {"c"}, {"d"}, "three"), node("Exp", {"d"}, {"y"}, "behind")},
            {"x"}, {"y"});
  const std::string error = failure(model(g));
  CHECK(contains(error, "cycle"));
  CHECK(contains(error, "'one' (Add) reads from 'three' (Relu)"));
  CHECK(contains(error, "'two' (Neg) reads from 'one' (Add)"));
  CHECK_FALSE(contains(error, "behind"));
  CHECK_FALSE(contains(error, "free"));
}

TEST_CASE("a node that reads itself, directly or in a body") {
  CHECK(contains(failure(model(graph({node("Add", {"x", "y"}, {"y"}, "self")}, {"x"}, {"y"}))),
                 "'self' (Add) reads from 'self' (Add)"));
  const auto branch = with(node("If", {"c"}, {"y"}, "self"),
                           {graph_attribute("then_branch", graph({node("Abs", {"y"}, {"t"})}, {}, {"t"})),
                            graph_attribute("else_branch", graph({}, {}, {"c"}))});
  CHECK(contains(failure(model(graph({branch}, {"c"}, {"y"}))), "cycle"));
}

TEST_CASE("a long cycle is cut short in the message") {
  std::vector<onnx::NodeProto> nodes;
  for (int i = 0; i < 1000; ++i)
    nodes.push_back(
        node("Abs", {"v" + std::to_string(i)}, {"v" + std::to_string((i + 1) % 1000)}, "n" + std::to_string(i)));
  const std::string error = failure(model(graph(nodes, {}, {"v0"})));
  CHECK(contains(error, "1000 nodes in all"));
  CHECK(error.size() < 600);
}

TEST_CASE("a long chain in reverse") {
  std::vector<onnx::NodeProto> nodes;
  for (int i = 20'000; i > 0; --i)
    nodes.push_back(node("Abs", {"v" + std::to_string(i - 1)}, {"v" + std::to_string(i)}));
  const Read r = read(model(graph(nodes, {"v0"}, {"v20000"})));
  CHECK(r.line(0) == "Abs(v0) -> v1");
  CHECK(r.line(19'999) == "Abs(v19999) -> v20000");
}

}  // namespace
}  // namespace headroom::test
