// What a plain file says: inputs, outputs, initializers, nodes, types, versions.
#include "tests/read/build.h"

namespace headroom::test {
namespace {

TEST_CASE("nodes keep their order, names, domains and absent values") {
  auto g =
      graph({node("Conv", {"x", "w"}, {"y"}, "/conv"), node("Clip", {"y", "", "w"}, {"z", ""}, "/clip")}, {"x"}, {"z"});
  *g.add_initializer() = tensor("w", {8, 3, 3, 3});
  g.mutable_node(0)->set_domain("ai.onnx");
  g.mutable_node(1)->set_domain("com.example");
  const Read r = read(model(g));
  CHECK(r.graph().name == "g");
  CHECK(r.graph().nodes.size() == 2);
  CHECK(r.line(0) == "Conv(x, w) -> y");
  CHECK(r.line(1) == "Clip(y, -, w) -> z, -");
  CHECK(r.node(0).name == "/conv");
  CHECK(r.node(0).domain.empty());
  CHECK(r.node(1).domain == "com.example");
  CHECK(r.node(0).index == 0);
  CHECK(r.node(1).index == 1);
  CHECK_FALSE(r.node(1).input(7).valid());
  CHECK(r.list(std::array{r.graph().outputs[0].value}) == "z");
  CHECK(r.graph().outputs[0].value == r.node(1).output(0));
  CHECK(r.model.value_count() == 4);
  CHECK(r.model.producer == "test");
  CHECK(r.model.ir_version == 8);
  CHECK(r.model.file_bytes == static_cast<std::int64_t>(r.bytes.size()));
  CHECK(r.model.diagnostics.empty());
}

TEST_CASE("an input with an initializer is a defaulted input, as IR 3 lists every weight") {
  auto g = graph({node("Add", {"x", "w"}, {"y"})}, {"x", "w"}, {"y"});
  *g.add_initializer() = tensor("w", {4});
  const Read r = read(model(g));
  REQUIRE(r.graph().inputs.size() == 1);
  REQUIRE(r.graph().defaulted_inputs.size() == 1);
  CHECK(r.model.name_of(r.graph().inputs[0].value) == "x");
  CHECK(r.graph().defaulted_inputs[0].value == r.graph().initializers[0].value);
  CHECK(r.node(0).input(1) == r.graph().initializers[0].value);
}

TEST_CASE("declared types: dims by number, by name, unknown; sequences and optionals of tensors") {
  auto g = graph({node("Identity", {"x"}, {"y"})}, {"x"}, {"y"});
  auto* shape = g.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape->clear_dim();
  shape->add_dim()->set_dim_value(3);
  shape->add_dim()->set_dim_param("batch");
  shape->add_dim();
  shape->add_dim()->set_dim_value(-1);
  shape->add_dim()->set_dim_value(0);
  auto* optional = g.add_input();
  optional->set_name("s");
  auto* inner = optional->mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_sequence_type();
  inner->mutable_elem_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
  g.add_input()->set_name("untyped");
  const Read r = read(model(g));
  const DeclaredType& x = r.graph().inputs[0].type;
  CHECK(x.kind == DeclaredType::Kind::tensor);
  CHECK(x.dtype == DType::f32);
  REQUIRE(x.dims.size() == 5);
  CHECK(x.dims[0].value == 3);
  CHECK(x.dims[1].param == "batch");
  CHECK(x.dims[1].value == -1);
  CHECK((x.dims[2].value == -1 && x.dims[2].param.empty()));
  CHECK(x.dims[3].value == -1);
  CHECK(x.dims[4].value == 0);
  const DeclaredType& s = r.graph().inputs[1].type;
  CHECK(s.kind == DeclaredType::Kind::optional);
  CHECK(s.dtype == DType::i64);
  CHECK_FALSE(s.has_shape);
  CHECK(r.graph().inputs[2].type.kind == DeclaredType::Kind::unknown);
}

TEST_CASE("a graph output may be an input or an initializer") {
  auto g = graph({}, {"x"}, {"x", "w"});
  *g.add_initializer() = tensor("w", {4});
  const Read r = read(model(g));
  CHECK(r.graph().outputs[0].value == r.graph().inputs[0].value);
  CHECK(r.graph().outputs[1].value == r.graph().initializers[0].value);
}

TEST_CASE("the exporter's metadata, and only what is needed of it") {
  auto n = node("Add", {"x", "x"}, {"y"});
  for (const auto& [key, content] :
       std::vector<std::pair<std::string, std::string>>{{"namespace", "not kept"},
                                                        {"pkg.torch.onnx.fx_node", "%add : call_function"},
                                                        {"pkg.torch.onnx.name_scopes", "['', 'layer']"},
                                                        {"pkg.torch.onnx.class_hierarchy", "['Net']"},
                                                        {"pkg.torch.onnx.stack_trace", "line 1"},
                                                        {"pkg.onnxscript.rewriter.rule_name", "rule"}}) {
    auto* entry = n.add_metadata_props();
    entry->set_key(key);
    entry->set_value(content);
  }
  const Read r = read(model(graph({n}, {"x"}, {"y"})));
  const NodeMetadata& m = r.node(0).metadata;
  CHECK(m.fx_node == "%add : call_function");
  CHECK(m.name_scopes == "['', 'layer']");
  CHECK(m.class_hierarchy == "['Net']");
  CHECK(m.stack_trace == "line 1");
  CHECK(m.rewriter_rule == "rule");
}

TEST_CASE("opsets by domain; newer versions are said, older ones refused") {
  const auto g = graph({node("Add", {"x", "x"}, {"y"})}, {"x"}, {"y"});
  auto m = model(g);
  m.mutable_opset_import(0)->set_domain("ai.onnx");
  auto* other = m.add_opset_import();
  other->set_domain("com.microsoft");
  other->set_version(1);
  {
    const Read r = read(m);
    CHECK(r.model.opset() == 17);
    CHECK(r.model.opset("com.microsoft") == 1);
    CHECK(r.model.opset("unknown") == 0);
  }
  m.set_ir_version(99);
  m.mutable_opset_import(0)->set_version(99);
  const Read r = read(m);
  REQUIRE(r.model.diagnostics.size() == 2);
  CHECK(r.model.diagnostics[0].code == "ir-version-newer");
  CHECK(r.model.diagnostics[1].code == "opset-newer");
  CHECK(r.model.diagnostics[1].severity == Severity::warning);

  CHECK(read(model(g, 7)).graph().nodes.size() == 1);
  CHECK(contains(failure(model(g, 6)), "opset 6 is too old"));
  m = model(g);
  m.set_ir_version(2);
  CHECK(contains(failure(m), "IR version 2 is too old"));
  m = model(g);
  m.clear_opset_import();
  CHECK(contains(failure(m), "no opset"));
}

TEST_CASE("a file without standard operators needs no opset of theirs") {
  auto g = graph({node("Binarizer", {"x"}, {"y"})}, {"x"}, {"y"});
  g.mutable_node(0)->set_domain("ai.onnx.ml");
  auto m = model(g);
  m.mutable_opset_import(0)->set_domain("ai.onnx.ml");
  CHECK(read(m).model.opset("ai.onnx.ml") == 17);
}

TEST_CASE("the hash tells graphs and constants apart, not weights") {
  const auto with_weight = [](std::size_t count, char fill, const std::string& op) {
    auto g = graph({node(op, {"x", "w"}, {"y"})}, {"x"}, {"y"});
    *g.add_initializer() = tensor("w", {static_cast<std::int64_t>(count)});
    g.mutable_initializer(0)->set_raw_data(std::string(4 * count, fill));
    return read(model(g)).model.hash();
  };
  CHECK(with_weight(1000, 'a', "Add") == with_weight(1000, 'b', "Add"));
  CHECK(with_weight(1000, 'a', "Add") != with_weight(1000, 'a', "Mul"));
  CHECK(with_weight(2, 'a', "Add") != with_weight(2, 'b', "Add"));
}

TEST_CASE("fields unknown to the schema are stepped over, groups too") {
  auto bytes = model(graph({node("Add", {"x", "x"}, {"y"})}, {"x"}, {"y"})).SerializeAsString();
  bytes += "\xA3\x06";              // field 100, a group begins
  bytes += "\x08\x01\x13\x14\x0D";  // in it a varint, an empty group 2, four bytes
  bytes += "abcd\xA4\x06";          // … and its end
  bytes += std::string("\xAA\x06\x02hi", 5);
  CHECK(read_bytes(bytes).graph().nodes.size() == 1);
}

TEST_CASE("a model can be moved") {
  Read r = read(model(graph({node("Add", {"x", "x"}, {"y"})}, {"x"}, {"y"})));
  const Model moved = std::move(r.model);
  CHECK(moved.graph().nodes[0].op_type == "Add");
  CHECK(moved.name_of(moved.graph().nodes[0].output(0)) == "y");
}

}  // namespace
}  // namespace headroom::test
