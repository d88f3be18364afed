// Model-local functions are inlined.
#include "tests/read/build.h"

namespace headroom::test {
namespace {

onnx::FunctionProto function(const std::string& name, const Names& inputs, const Names& outputs,
                             const std::vector<onnx::NodeProto>& nodes) {
  onnx::FunctionProto f;
  f.set_domain("local");
  f.set_name(name);
  for (const auto& i : inputs) f.add_input(i);
  for (const auto& o : outputs) f.add_output(o);
  for (const auto& n : nodes) *f.add_node() = n;
  f.add_opset_import()->set_version(17);
  return f;
}

onnx::NodeProto call(const std::string& name, const Names& inputs, const Names& outputs, const std::string& node_name) {
  auto n = node(name, inputs, outputs, node_name);
  n.set_domain("local");
  return n;
}

onnx::ModelProto model_with(const onnx::GraphProto& g, const std::vector<onnx::FunctionProto>& functions) {
  auto m = model(g);
  for (const auto& f : functions) *m.add_functions() = f;
  return m;
}

void say(onnx::NodeProto& n, const std::string& scope) {
  auto* entry = n.add_metadata_props();
  entry->set_key("pkg.torch.onnx.name_scopes");
  entry->set_value(scope);
}

TEST_CASE("each call has values of its own, named by its scope") {
  const auto f = function("f", {"a", "b"}, {"r"}, {node("Mul", {"a", "b"}, {"t"}, "mul"), node("Abs", {"t"}, {"r"})});
  const auto g =
      graph({call("f", {"x", "w"}, {"u"}, "/first"), call("f", {"u", "x"}, {"y"}, "/second")}, {"x", "w"}, {"y"});
  const Read r = read(model_with(g, {f}));
  REQUIRE(r.graph().nodes.size() == 4);
  CHECK(r.line(0) == "Mul(x, w) -> /first/t");
  CHECK(r.line(1) == "Abs(/first/t) -> u");
  CHECK(r.line(2) == "Mul(u, x) -> /second/t");
  CHECK(r.line(3) == "Abs(/second/t) -> y");
  CHECK(r.node(0).name == "/first/mul");
  CHECK(r.node(1).name == "/first/Abs");
  CHECK(r.node(3).index == 3);
}

TEST_CASE("a call without a name, and names that begin with a slash") {
  const auto f = function("f", {"a"}, {"r"}, {node("Abs", {"a"}, {"/m/t"}, "/m/Abs"), node("Neg", {"/m/t"}, {"r"})});
  const Read r = read(model_with(graph({call("f", {"x"}, {"y"}, "")}, {"x"}, {"y"}), {f}));
  CHECK(r.node(0).name == "f/m/Abs");
  CHECK(r.line(0) == "Abs(x) -> f/m/t");
}

TEST_CASE("functions call functions, whatever their order in the file") {
  const auto outer =
      function("outer", {"a"}, {"r"}, {call("inner", {"a"}, {"t"}, "i1"), call("inner", {"t"}, {"r"}, "i2")});
  const auto inner = function("inner", {"a"}, {"r"}, {node("Abs", {"a"}, {"s"}), node("Neg", {"s"}, {"r"})});
  const Read r = read(model_with(graph({call("outer", {"x"}, {"y"}, "o")}, {"x"}, {"y"}), {outer, inner}));
  REQUIRE(r.graph().nodes.size() == 4);
  CHECK(r.line(1) == "Neg(o/i1/s) -> o/t");
  CHECK(r.line(3) == "Neg(o/i2/s) -> y");
}

TEST_CASE("domain and overload choose the function; another domain's operator is left alone") {
  auto f1 = function("f", {"a"}, {"r"}, {node("Abs", {"a"}, {"r"})});
  auto f2 = f1;
  f2.set_overload("v2");
  f2.mutable_node(0)->set_op_type("Neg");
  auto c2 = call("f", {"u"}, {"v"}, "c2");
  c2.set_overload("v2");
  const auto g = graph({call("f", {"x"}, {"u"}, "c1"), c2, node("f", {"v"}, {"y"}, "c3")}, {"x"}, {"y"});
  const Read r = read(model_with(g, {f1, f2}));
  CHECK(r.line(0) == "Abs(x) -> u");
  CHECK(r.line(1) == "Neg(u) -> v");
  CHECK(r.line(2) == "f(v) -> y");
  CHECK(contains(failure(model_with(g, {f1, f1})), "two functions are named 'local::f'"));
}

TEST_CASE("attributes by reference: given, by default, or absent") {
  auto f = function("f", {"a"}, {"r"},
                    {with(node("Softmax", {"a"}, {"r"}), {reference("axis", "dim"), reference("keep", "keepdims"),
                                                          reference("other", "none"), int_attribute("own", 1)})});
  for (const auto* name : {"dim", "none"}) f.add_attribute(name);
  *f.add_attribute_proto() = int_attribute("keepdims", 5);
  const auto g = graph({with(call("f", {"x"}, {"u"}, "c1"), {int_attribute("dim", 2)}),
                        with(call("f", {"u"}, {"y"}, "c2"), {int_attribute("dim", 3), int_attribute("keepdims", 6)})},
                       {"x"}, {"y"});
  const Read r = read(model_with(g, {f}));
  CHECK(r.node(0).integer("axis", 0) == 2);
  CHECK(r.node(0).integer("keep", 0) == 5);
  CHECK(r.node(0).attribute("other") == nullptr);
  CHECK(r.node(0).integer("own", 0) == 1);
  CHECK(r.node(1).integer("axis", 0) == 3);
  CHECK(r.node(1).integer("keep", 0) == 6);
}

TEST_CASE("references pass through two functions and into bodies") {
  const auto body = graph({with(node("Concat", {"a"}, {"t"}), {reference("axis", "inner_axis")})}, {}, {"t"});
  const auto inner = function("inner", {"a", "c"}, {"r"},
                              {with(node("If", {"c"}, {"r"}, "if"),
                                    {graph_attribute("then_branch", body), graph_attribute("else_branch", body)})});
  const auto outer = function("outer", {"a", "c"}, {"r"},
                              {with(call("inner", {"a", "c"}, {"r"}, "i"), {reference("inner_axis", "axis")})});
  const Read r = read(
      model_with(graph({with(call("outer", {"x", "c"}, {"y"}, "o"), {int_attribute("axis", 4)})}, {"x", "c"}, {"y"}),
                 {inner, outer}));
  const Graph& then_branch = *r.node(0).graph("then_branch");
  CHECK(then_branch.nodes[0].integer("axis", 0) == 4);
  CHECK(then_branch.nodes[0].input(0) == r.graph().inputs[0].value);
  CHECK(r.line(then_branch.nodes[0]) == "Concat(x) -> o/i/t");
  CHECK(contains(failure(model(graph({with(node("Abs", {"x"}, {"y"}, "n"), {reference("a", "b")})}, {"x"}, {"y"}))),
                 "refers to a function's attribute 'b'"));
}

TEST_CASE("a call inside a body, one function with two shapes of call") {
  const auto f =
      function("f", {"a", "b"}, {"r", "s"}, {node("Clip", {"a", "", "b"}, {"r"}), node("Neg", {"a"}, {"s"})});
  const auto body = graph({call("f", {"x"}, {"t"}, "in_body")}, {}, {"t"});
  const auto branch =
      with(node("If", {"c"}, {"u"}), {graph_attribute("then_branch", body), graph_attribute("else_branch", body)});
  const Read r = read(model_with(graph({branch, call("f", {"u", "x"}, {"", "y"}, "top")}, {"x", "c"}, {"y"}), {f}));
  const Graph& then_branch = *r.node(0).graph("then_branch");
  REQUIRE(then_branch.nodes.size() == 2);
  CHECK(r.line(then_branch.nodes[0]) == "Clip(x, -, -) -> t");
  CHECK(r.line(then_branch.nodes[1]) == "Neg(x) -> in_body/s");
  CHECK(r.line(1) == "Clip(u, -, x) -> top/r");
  CHECK(r.line(2) == "Neg(u) -> y");
}

TEST_CASE("a function sees only its own names") {
  const auto f = function("f", {"a"}, {"r"}, {node("Add", {"a", "w"}, {"r"}, "add")});
  const auto g = graph({call("f", {"x"}, {"y"}, "c")}, {"x", "w"}, {"y"});
  const std::string error = failure(model_with(g, {f}));
  CHECK(contains(error, "'add' (Add) of function 'local::f' reads 'w'"));
}

TEST_CASE("an output that the function only passes on is copied") {
  const auto f = function("f", {"a", "b"}, {"a", "r", "r"}, {node("Abs", {"b"}, {"r"})});
  const Read r = read(model_with(graph({call("f", {"x", "x"}, {"p", "q", "s"}, "c")}, {"x"}, {"p", "q", "s"}), {f}));
  REQUIRE(r.graph().nodes.size() == 3);
  CHECK(r.line(0) == "Abs(x) -> q");
  CHECK(r.line(1) == "Identity(x) -> p");
  CHECK(r.line(2) == "Identity(q) -> s");
  CHECK(contains(failure(model_with(graph({call("f", {}, {"p", "q"}, "c")}, {"x"}, {"p"}), {f})),
                 "passes on its input 'a'"));
}

TEST_CASE("nodes of a body that tell nothing of themselves take the call's metadata") {
  auto own = node("Neg", {"t"}, {"r"});
  say(own, "own");
  const auto f = function("f", {"a"}, {"r"}, {node("Abs", {"a"}, {"t"}), own});
  auto c = call("f", {"x"}, {"y"}, "c");
  say(c, "the call");
  const Read r = read(model_with(graph({c}, {"x"}, {"y"}), {f}));
  CHECK(r.node(0).metadata.name_scopes == "the call");
  CHECK(r.node(1).metadata.name_scopes == "own");
}

TEST_CASE("unsorted bodies are sorted") {
  const auto f = function("f", {"a"}, {"r"}, {node("Neg", {"t"}, {"r"}), node("Abs", {"a"}, {"t"})});
  const auto g = graph({call("f", {"u"}, {"y"}, "late"), call("f", {"x"}, {"u"}, "soon")}, {"x"}, {"y"});
  const Read r = read(model_with(g, {f}));
  CHECK(r.line(0) == "Abs(x) -> soon/t");
  CHECK(r.line(1) == "Neg(soon/t) -> u");
  CHECK(r.line(3) == "Neg(late/t) -> y");
}

TEST_CASE("calls that do not fit") {
  const auto f = function("f", {"a"}, {"r"}, {node("Abs", {"a"}, {"r"})});
  CHECK(contains(failure(model_with(graph({call("f", {"x", "x"}, {"y"}, "c")}, {"x"}, {"y"}), {f})), "has 1 inputs"));
  CHECK(contains(failure(model_with(graph({call("f", {"x"}, {"y", "z"}, "c")}, {"x"}, {"y"}), {f})), "node 'c' (f)"));
  const auto empty = function("f", {"a"}, {"r"}, {});
  CHECK(contains(failure(model_with(graph({call("f", {"x"}, {"y"}, "c")}, {"x"}, {"y"}), {empty})),
                 "never makes its output 'r'"));
}

TEST_CASE("recursion, direct and through others") {
  const auto self = function("f", {"a"}, {"r"}, {call("f", {"a"}, {"r"}, "again")});
  CHECK(contains(failure(model_with(graph({call("f", {"x"}, {"y"}, "c")}, {"x"}, {"y"}), {self})),
                 "a function calls itself: 'local::f' → 'local::f'"));
  const auto ping = function("ping", {"a"}, {"r"}, {call("pong", {"a"}, {"r"}, "p")});
  const auto pong = function("pong", {"a"}, {"r"}, {call("ping", {"a"}, {"r"}, "p")});
  CHECK(contains(failure(model_with(graph({call("ping", {"x"}, {"y"}, "c")}, {"x"}, {"y"}), {ping, pong})),
                 "'local::ping' → 'local::pong' → 'local::ping'"));
  const auto g = graph({node("Abs", {"x"}, {"y"})}, {"x"}, {"y"});  // nobody calls it: no harm
  CHECK(read(model_with(g, {self})).graph().nodes.size() == 1);
}

/// f0 calls f1 ten times, f1 calls f2 ten times, …; the last one has `nodes`.
onnx::ModelProto explosive(int levels, const std::vector<onnx::NodeProto>& nodes) {
  std::vector<onnx::FunctionProto> functions;
  for (int level = 0; level + 1 < levels; ++level) {
    std::vector<onnx::NodeProto> calls;
    for (int i = 0; i < 10; ++i)
      calls.push_back(call("f" + std::to_string(level + 1), {"v" + std::to_string(i)},
                           {i == 9 ? "r" : "v" + std::to_string(i + 1)}, "c"));
    functions.push_back(function("f" + std::to_string(level), {"v0"}, {"r"}, calls));
  }
  functions.push_back(function("f" + std::to_string(levels - 1), {"a"}, {"r"}, nodes));
  return model_with(graph({call("f0", {"x"}, {"y"}, "c")}, {"x"}, {"y"}), functions);
}

TEST_CASE("blow-ups end early: nodes, calls that leave no node, depth") {
  CHECK(read(explosive(4, {node("Abs", {"a"}, {"r"})})).graph().nodes.size() == 1000);
  ReadLimits limits;
  limits.max_nodes_after_inlining = 100'000;
  CHECK(contains(failure(explosive(20, {node("Abs", {"a"}, {"r"})}), limits), "more than 100000 nodes"));
  CHECK(contains(failure(explosive(80, {node("Abs", {"a"}, {"r"})}), limits), "levels deep"));
  auto without = explosive(12, {});
  for (auto& f : *without.mutable_functions()) f.clear_output();
  for (auto& f : *without.mutable_functions())
    for (auto& n : *f.mutable_node()) {
      n.clear_input();
      n.clear_output();
    }
  without.mutable_graph()->mutable_node(0)->clear_output();
  *without.mutable_graph()->add_node() = node("Abs", {"x"}, {"y"});
  CHECK(contains(failure(without, limits), "more than 100000 nodes"));
}

TEST_CASE("a function for another opset is said once it is called") {
  auto f = function("f", {"a"}, {"r"}, {node("Abs", {"a"}, {"r"})});
  f.mutable_opset_import(0)->set_version(18);
  const Read r = read(model_with(graph({call("f", {"x"}, {"y"}, "c")}, {"x"}, {"y"}), {f}));
  REQUIRE(r.model.diagnostics.size() == 1);
  CHECK(r.model.diagnostics[0].code == "function-opset");
}

}  // namespace
}  // namespace headroom::test
