// Files made to cost: the work and the memory stay bounded.
#include <doctest/doctest.h>
#include <onnx-ml.pb.h>

#include <span>
#include <string>

#include "estimator/base/error.h"
#include "tests/bind/case_text.h"

using namespace headroom;
using namespace headroom::test;

namespace {

std::string error_of(const std::string& file) {
  const Model model = read_model(std::as_bytes(std::span(file)), {});
  try {
    bind(model, {});
  } catch (const Error& e) {
    CHECK(e.code() == Exit::bad_input);
    CHECK(!e.where().empty());
    CHECK(!e.hint().empty());
    return e.what();
  }
  return {};
}

onnx::ModelProto model_of(std::string_view line) {
  onnx::ModelProto model;
  REQUIRE(model.ParseFromString(parse_case(line).file));
  return model;
}

/// The last node of the case again and again, each reading what the one before made.
std::string repeated(std::string_view line, int times) {
  onnx::ModelProto model = model_of(line);
  const onnx::NodeProto last = model.graph().node(model.graph().node_size() - 1);
  std::string previous = last.output(0);
  for (int i = 0; i < times; ++i) {
    onnx::NodeProto& node = *model.mutable_graph()->add_node() = last;
    node.set_input(0, previous);
    previous = "again" + std::to_string(i);
    node.set_output(0, previous);
  }
  return model.SerializeAsString();
}

std::string nested_loops(int depth, std::int64_t trips) {
  std::string body = "o = Relu(v)";
  for (int i = 0; i < depth; ++i)
    body = "o = Loop<body={(i, c, v) -> d = Identity(c); " + body + " -> (d, o)}>(m, _, v)";
  return parse_case("m = i64(" + std::to_string(trips) + "); v = f32[2]; " + body + " -> f32[2]").file;
}

}  // namespace

TEST_CASE("long chains are answered") {
  CHECK(error_of(repeated("r = Range(i64(0), i64(4096), i64(1)); Add(r, i64(1)) -> i64[4096]", 20000)).empty());
}

TEST_CASE("growth ends in an error") {
  CHECK(error_of(repeated("Concat<axis=0>(f32[2], f32[1]) -> f32[3]", 100)).empty());
  CHECK(error_of(repeated("Unsqueeze(f32[2], i64{0}) -> f32[1,2]", 100)).find("more dimensions") != std::string::npos);
  CHECK(error_of(repeated("Tile(f32[2], i64{1024}) -> f32[2048]", 10)).find("2^39") != std::string::npos);
  CHECK(error_of(repeated("s = SequenceConstruct(f32[2]); SequenceInsert(s, f32[2]) -> seq(f32[2],f32[2])", 3000))
            .find("too long") != std::string::npos);
}

TEST_CASE("nested loops") {
  CHECK(error_of(nested_loops(3, 10)).empty());
  CHECK(error_of(nested_loops(3, 1'000'000)).empty());
  CHECK(error_of(nested_loops(30, 2)).find("too deep") != std::string::npos);
}

TEST_CASE("an initializer that cannot be") {
  onnx::ModelProto model = model_of("Add(f32[2], f32{1,2}) -> f32[2]");
  onnx::TensorProto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.clear_float_data();
  weight.clear_dims();
  weight.add_dims(std::int64_t{1} << 40);
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  auto* location = weight.add_external_data();
  location->set_key("location");
  location->set_value("weights.bin");
  CHECK(error_of(model.SerializeAsString()).find("2^39") != std::string::npos);
}
