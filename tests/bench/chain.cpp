#include "tests/bench/chain.h"

#include <onnx-ml.pb.h>

#include <initializer_list>

namespace headroom::bench {
namespace {

class Chain {
 public:
  std::string of(int nodes) {
    model_.set_ir_version(10);
    model_.add_opset_import()->set_version(18);
    declare(graph_.add_input(), last_);
    for (int block = 0; graph_.node_size() + 5 <= nodes; ++block) add_block(std::to_string(block));
    declare(graph_.add_output(), last_);
    return model_.SerializeAsString();
  }

 private:
  static void declare(onnx::ValueInfoProto* value, const std::string& name) {
    value->set_name(name);
    auto& tensor = *value->mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx::TensorProto::FLOAT);
    tensor.mutable_shape()->add_dim()->set_dim_param("batch");
    tensor.mutable_shape()->add_dim()->set_dim_value(64);
  }

  void add_block(const std::string& block) {
    const std::string scope = "layers." + block, residual = last_;
    node("LayerNormalization", scope + ".norm", "torch.nn.modules.normalization.LayerNorm", "layer_norm.default",
         "layer_norm_" + block, {last_, weight(scope + ".norm.weight", {64}), weight(scope + ".norm.bias", {64})},
         "[64]");
    linear(scope + ".up", "up_" + block);
    node("Relu", scope + ".act", "torch.nn.modules.activation.ReLU", "relu.default", "relu_" + block, {last_});
    linear(scope + ".down", "down_" + block);
    node("Add", scope, "model.Block", "add.Tensor", "add_" + block, {residual, last_});
  }

  void linear(const std::string& scope, const std::string& fx) {
    onnx::AttributeProto& transposed =
        *node("Gemm", scope, "torch.nn.modules.linear.Linear", "linear.default", fx,
              {last_, weight(scope + ".weight", {64, 64}), weight(scope + ".bias", {64})})
             .add_attribute();
    transposed.set_name("transB");
    transposed.set_type(onnx::AttributeProto::INT);
    transposed.set_i(1);
  }

  std::string weight(const std::string& name, std::initializer_list<std::int64_t> dims) {
    onnx::TensorProto& t = *graph_.add_initializer();
    t.set_name(name);
    t.set_data_type(onnx::TensorProto::FLOAT);
    for (const auto d : dims) t.add_dims(d);
    t.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& location = *t.add_external_data();
    location.set_key("location");
    location.set_value("left-out");
    return name;
  }

  onnx::NodeProto& node(const std::string& op, const std::string& scope, const std::string& module,
                        const std::string& target, const std::string& fx, std::initializer_list<std::string> inputs,
                        const std::string& second_argument = "") {
    onnx::NodeProto& n = *graph_.add_node();
    n.set_op_type(op);
    n.set_name("node_" + fx);
    std::string arguments;
    for (const auto& input : inputs) {
      n.add_input(input);
      arguments += (arguments.empty() ? "%" : ", %") + input;
      if (n.input_size() == 1 && !second_argument.empty()) arguments += ", " + second_argument;
    }
    n.add_output(fx);
    const auto metadata = [&n](const char* key, const std::string& value) {
      auto& entry = *n.add_metadata_props();
      entry.set_key(key);
      entry.set_value(value);
    };
    metadata("pkg.torch.onnx.class_hierarchy",
             "['model.Model', 'model.Block', '" + module + "', 'aten." + target + "']");
    metadata("pkg.torch.onnx.fx_node", "%" + fx + " : [num_users=1] = call_function[target=torch.ops.aten." + target +
                                           "](args = (" + arguments + "), kwargs = {})");
    metadata("pkg.torch.onnx.name_scopes", "['', 'layers', '" + scope + "', '" + fx + "']");
    metadata("pkg.torch.onnx.stack_trace",
             "File \"model.py\", line 21, in forward\n    x = block(x)\n"
             "  File \"model.py\", line 11, in forward\n    return x + self.down(self.act(self.up(self.norm(x))))");
    last_ = fx;
    return n;
  }

  onnx::ModelProto model_;
  onnx::GraphProto& graph_ = *model_.mutable_graph();
  std::string last_ = "x";
};

}  // namespace

std::string chain(int nodes) { return Chain().of(nodes); }

}  // namespace headroom::bench
