// Small ONNX files for the reader's tests, written by protobuf itself.
#pragma once

#include <doctest/doctest.h>
#include <onnx-ml.pb.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/read/graph.h"

namespace headroom::test {

using Names = std::vector<std::string>;

inline onnx::NodeProto node(const std::string& op, const Names& inputs, const Names& outputs,
                            const std::string& name = {}) {
  onnx::NodeProto n;
  n.set_op_type(op);
  n.set_name(name);
  for (const auto& i : inputs) n.add_input(i);
  for (const auto& o : outputs) n.add_output(o);
  return n;
}

inline onnx::ValueInfoProto value(const std::string& name, const std::vector<std::int64_t>& dims = {4}) {
  onnx::ValueInfoProto v;
  v.set_name(name);
  auto* type = v.mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape();
  for (const auto d : dims) type->mutable_shape()->add_dim()->set_dim_value(d);
  return v;
}

inline onnx::TensorProto tensor(const std::string& name, const std::vector<std::int64_t>& dims,
                                onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
  onnx::TensorProto t;
  t.set_name(name);
  t.set_data_type(type);
  for (const auto d : dims) t.add_dims(d);
  return t;
}

inline onnx::GraphProto graph(const std::vector<onnx::NodeProto>& nodes, const Names& inputs, const Names& outputs) {
  onnx::GraphProto g;
  g.set_name("g");
  for (const auto& n : nodes) *g.add_node() = n;
  for (const auto& i : inputs) *g.add_input() = value(i);
  for (const auto& o : outputs) *g.add_output() = value(o);
  return g;
}

inline onnx::ModelProto model(const onnx::GraphProto& g, std::int64_t opset = 17) {
  onnx::ModelProto m;
  m.set_ir_version(8);
  m.set_producer_name("test");
  m.add_opset_import()->set_version(opset);
  *m.mutable_graph() = g;
  return m;
}

inline onnx::AttributeProto graph_attribute(const std::string& name, const onnx::GraphProto& g) {
  onnx::AttributeProto a;
  a.set_name(name);
  a.set_type(onnx::AttributeProto::GRAPH);
  *a.mutable_g() = g;
  return a;
}

inline onnx::AttributeProto int_attribute(const std::string& name, std::int64_t i) {
  onnx::AttributeProto a;
  a.set_name(name);
  a.set_type(onnx::AttributeProto::INT);
  a.set_i(i);
  return a;
}

inline onnx::AttributeProto reference(const std::string& name, const std::string& to) {
  onnx::AttributeProto a;
  a.set_name(name);
  a.set_type(onnx::AttributeProto::INT);
  a.set_ref_attr_name(to);
  return a;
}

inline onnx::NodeProto with(onnx::NodeProto n, const std::vector<onnx::AttributeProto>& attributes) {
  for (const auto& a : attributes) *n.add_attribute() = a;
  return n;
}

/// A Model and the bytes it points into.
struct Read {
  std::string bytes;
  Model model;
  const Graph& graph() const { return model.graph(); }
  const Node& node(std::size_t i) const {
    REQUIRE(i < graph().nodes.size());
    return graph().nodes[i];
  }
  /// "Op(a, b) -> c", absent ones as "-".
  std::string line(std::size_t i) const { return line(node(i)); }
  std::string line(const Node& n) const {
    return std::string(n.op_type) + "(" + list(n.inputs) + ") -> " + list(n.outputs);
  }
  std::string list(std::span<const ValueId> values) const {
    std::string out;
    for (const ValueId v : values) {
      out += out.empty() ? "" : ", ";
      out += v.valid() ? std::string(model.name_of(v)) : "-";
    }
    return out;
  }
};

inline Model read_bytes(std::string_view bytes, const ReadLimits& limits = {}) {
  return read_model(std::as_bytes(std::span(bytes)), ".", limits);
}

inline Read read(const onnx::ModelProto& m, const ReadLimits& limits = {}) {
  Read r{m.SerializeAsString(), {}};
  r.model = read_bytes(r.bytes, limits);
  return r;
}

/// What reading `bytes` fails with: "what | where | hint"; fails the test when it does not.
inline std::string failure(std::string_view bytes, const ReadLimits& limits = {}) {
  try {
    read_bytes(bytes, limits);
  } catch (const Error& e) {
    CHECK(e.code() == Exit::bad_input);
    CHECK_FALSE(e.where().empty());
    CHECK_FALSE(e.hint().empty());
    return std::string(e.what()) + " | " + e.where() + " | " + e.hint();
  }
  FAIL("read without an error");
  return {};
}
inline std::string failure(const onnx::ModelProto& m, const ReadLimits& limits = {}) {
  return failure(m.SerializeAsString(), limits);
}

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// A folder for one test, gone afterwards.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("headroom-read-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace headroom::test
