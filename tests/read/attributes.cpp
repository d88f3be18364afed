// Attributes of every kind.
#include "tests/read/build.h"

namespace headroom::test {
namespace {

using Kind = Attribute::Kind;

Read node_with(const std::vector<onnx::AttributeProto>& attributes) {
  return read(model(graph({with(node("Op", {"x"}, {"y"}), attributes)}, {"x"}, {"y"})));
}

onnx::AttributeProto named(const std::string& name, onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto a;
  a.set_name(name);
  a.set_type(type);
  return a;
}

TEST_CASE("single values") {
  auto real = named("alpha", onnx::AttributeProto::FLOAT);
  real.set_f(0.5F);
  auto text = named("mode", onnx::AttributeProto::STRING);
  text.set_s("nearest");
  const Read r = node_with({real, text, int_attribute("axis", -1)});
  CHECK(r.node(0).real("alpha", 0) == 0.5);
  CHECK(r.node(0).text("mode") == "nearest");
  CHECK(r.node(0).integer("axis", 0) == -1);
  CHECK(r.node(0).integer("absent", 7) == 7);
  CHECK(r.node(0).attribute("absent") == nullptr);
}

TEST_CASE("lists, packed or not; an empty list keeps its kind") {
  auto ints = named("pads", onnx::AttributeProto::INTS);
  for (const int i : {0, 1, -2}) ints.add_ints(i);
  auto reals = named("scales", onnx::AttributeProto::FLOATS);
  for (const float f : {1.5F, 2.F}) reals.add_floats(f);
  auto texts = named("names", onnx::AttributeProto::STRINGS);
  texts.add_strings("a");
  texts.add_strings("b");
  const Read r = node_with({ints, reals, texts, named("none", onnx::AttributeProto::INTS)});
  const auto pads = r.node(0).integers("pads");
  CHECK(std::vector<std::int64_t>(pads.begin(), pads.end()) == std::vector<std::int64_t>{0, 1, -2});
  CHECK(r.node(0).attribute("scales")->reals[1] == 2.F);
  CHECK(r.node(0).attribute("names")->texts[1] == "b");
  CHECK(r.node(0).attribute("none")->kind == Kind::integers);
  CHECK(r.node(0).integers("none").empty());
}

TEST_CASE("packed ints, as other writers encode them") {
  // attribute { name: "p"  ints: [1, -1] packed  type: INTS }, put in as an unknown field of an AttributeProto.
  const std::string packed = "\x42\x0B\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01";
  onnx::AttributeProto a;
  REQUIRE(a.ParseFromString(named("p", onnx::AttributeProto::INTS).SerializeAsString() + packed));
  const Read r = node_with({a});
  REQUIRE(r.node(0).integers("p").size() == 2);
  CHECK(r.node(0).integers("p")[1] == -1);
}

TEST_CASE("without a type (IR 2 and older writers) the filled field tells") {
  auto a = int_attribute("axis", 3);
  a.clear_type();
  onnx::AttributeProto list;
  list.set_name("l");
  list.add_ints(1);
  const Read r = node_with({a, list});
  CHECK(r.node(0).integer("axis", 0) == 3);
  CHECK(r.node(0).attribute("l")->kind == Kind::integers);
}

TEST_CASE("tensors: one, several, sparse") {
  auto one = named("value", onnx::AttributeProto::TENSOR);
  *one.mutable_t() = tensor("", {2}, onnx::TensorProto::INT64);
  one.mutable_t()->add_int64_data(3);
  one.mutable_t()->add_int64_data(-1);
  auto several = named("values", onnx::AttributeProto::TENSORS);
  *several.add_tensors() = tensor("a", {1});
  *several.add_tensors() = tensor("b", {2});
  auto sparse = named("sparse_value", onnx::AttributeProto::SPARSE_TENSOR);
  *sparse.mutable_sparse_tensor()->mutable_values() = tensor("", {3});
  for (const int d : {10, 20}) sparse.mutable_sparse_tensor()->add_dims(d);
  const Read r = node_with({one, several, sparse});
  const TensorData& t = *r.node(0).attribute("value")->tensor;
  CHECK(t.where == TensorData::Where::decoded);
  std::array<std::int64_t, 2> values{};
  REQUIRE(t.bytes.size() == sizeof values);
  std::memcpy(values.data(), t.bytes.data(), sizeof values);
  CHECK(values == std::array<std::int64_t, 2>{3, -1});
  CHECK(r.node(0).attribute("values")->tensors[1].dims[0] == 2);
  CHECK(r.node(0).attribute("sparse_value")->tensor->dims[1] == 20);
}

TEST_CASE("graphs, several in one attribute") {
  auto a = named("branches", onnx::AttributeProto::GRAPHS);
  *a.add_graphs() = graph({node("Neg", {"x"}, {"n"})}, {}, {"n"});
  *a.add_graphs() = graph({node("Abs", {"x"}, {"n"})}, {}, {"n"});
  const Read r = node_with({a, graph_attribute("body", graph({}, {}, {"x"}))});
  const auto graphs = r.node(0).attribute("branches")->graphs;
  REQUIRE(graphs.size() == 2);
  CHECK(graphs[1]->nodes[0].op_type == "Abs");
  CHECK(graphs[0]->nodes[0].output(0) != graphs[1]->nodes[0].output(0));
  CHECK(r.node(0).graph("body")->outputs[0].value == r.graph().inputs[0].value);
  CHECK(r.node(0).index == 0);
  CHECK(graphs[1]->nodes[0].index == 2);
}

}  // namespace
}  // namespace headroom::test
