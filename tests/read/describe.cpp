#include "estimator/read/describe.h"

#include "tests/read/build.h"

namespace headroom::test {
namespace {

TEST_CASE("a graph as text") {
  auto g = graph({with(node("Conv", {"x", "w"}, {"h"}, "/conv"), {int_attribute("group", 1)}),
                  with(node("If", {"c"}, {"y"}, "/if"),
                       {graph_attribute("then_branch", graph({node("Abs", {"h"}, {"t"}, "/abs")}, {}, {"t"}))})},
                 {"x", "c"}, {"y"});
  *g.add_initializer() = tensor("w", {8, 3, 3, 3});
  auto* scopes = g.mutable_node(0)->add_metadata_props();
  scopes->set_key("pkg.torch.onnx.name_scopes");
  scopes->set_value("['', 'conv']");
  CHECK(describe(read(model(g)).model) ==
        "file ./model.onnx, IR 8, opset 17, made by test \n"
        "graph g: 2 nodes\n"
        "input %x: float32[4]\n"
        "input %c: float32[4]\n"
        "initializer %w: float32[8, 3, 3, 3], no data\n"
        "/conv Conv(%x, %w) -> %h {group=1} @ ['', 'conv']\n"
        "/if If(%c) -> %y {then_branch=graph}\n"
        "  graph g: 1 nodes\n"
        "  /abs Abs(%h) -> %t\n"
        "  output %t: float32[4]\n"
        "output %y: float32[4]\n");
}

TEST_CASE("names cannot steer a terminal") {
  const auto g = graph({node("Abs", {"x"}, {"\x1B[31m"}, "a\nb")}, {"x"}, {"\x1B[31m"});
  const std::string text = describe(read(model(g)).model);
  CHECK_FALSE(contains(text, "\x1B"));
  CHECK(contains(text, "a\\x0Ab"));
}

}  // namespace
}  // namespace headroom::test
