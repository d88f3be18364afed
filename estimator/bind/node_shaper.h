// NodeShaper: what an operator's shape rule sees of its node, and where it puts the outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/bind/shaped_graph.h"

namespace headroom {

/// Largest tensors whose contents are folded: shape arithmetic is far below, and nothing grows beyond it.
inline constexpr std::int64_t max_folded_integers = 4096;
inline constexpr std::int64_t max_folded_reals = 256;

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

/// The value of a tensor with these elements and known contents.
std::shared_ptr<const KnownContents> known(Integers values);
std::shared_ptr<const KnownContents> known(Reals values);

class NodeShaper {
 public:
  NodeShaper(const Node& node, ShapedGraph& graph) : node_(node), graph_(graph) {}

  const Node& node() const { return node_; }
  /// Of the standard domain.
  std::int64_t opset() const { return graph_.model->opset(); }
  std::size_t input_count() const { return node_.inputs.size(); }
  std::size_t output_count() const { return node_.outputs.size(); }

  // Inputs. All fail with the node's name when what they return is not there.
  bool has(std::size_t i) const { return node_.input(i).valid(); }
  /// "" when absent.
  std::string_view name(std::size_t i) const {
    return has(i) ? graph_.model->name_of(node_.input(i)) : std::string_view{};
  }
  const ShapedValue& value(std::size_t i) const;
  const ShapedValue& tensor(std::size_t i) const;
  const Dims& dims(std::size_t i) const { return tensor(i).dims; }
  /// Dims of input i, which must have this rank.
  const Dims& dims_of_rank(std::size_t i, std::size_t rank) const;
  std::size_t rank(std::size_t i) const { return tensor(i).dims.size(); }
  DType dtype(std::size_t i) const { return tensor(i).dtype; }
  const std::vector<ShapedValue>& sequence(std::size_t i) const;

  // Contents.
  /// Null when input i is absent or its integers are not known.
  const Integers* integers(std::size_t i) const;
  const Reals* reals(std::size_t i) const;
  /// Fails saying that `role` depends on data when they are not known.
  const Integers& needed_integers(std::size_t i, std::string_view role) const;
  std::int64_t needed_integer(std::size_t i, std::string_view role) const;
  /// Integers that older opsets keep in an attribute and newer ones in an input: nullopt when neither is there. Fails
  /// when the input is there and not known.
  std::optional<Dims> attribute_or_input(std::string_view attribute, std::size_t input) const;

  // Arithmetic on axes and dims.
  /// `axis` in [-rank, rank) as an index.
  std::size_t axis(std::int64_t axis, std::size_t rank) const;
  /// The same for a list, in which nothing may stand twice.
  Dims axes(std::span<const std::int64_t> axes, std::size_t rank) const;
  Dims axes(const Dims& axes, std::size_t rank) const { return this->axes(std::span(axes.data(), axes.size()), rank); }
  /// Numpy's broadcast of two shapes.
  Dims broadcast(const Dims& a, const Dims& b) const;
  Dims broadcast_inputs(std::initializer_list<std::size_t> inputs) const;
  /// One size that two tensors share; fails when they differ, takes the smaller when one is only a bound.
  std::int64_t same_size(std::int64_t a, std::int64_t b, std::string_view what) const;
  void require(bool condition, std::string_view why) const {
    if (!condition) fail(std::string(why));
  }

  // Outputs; silently nothing when the node does not name output i.
  ShapedValue* set(std::size_t i, DType dtype, Dims dims) const;
  void set_known(std::size_t i, DType dtype, Dims dims, Integers contents) const;
  void set_known(std::size_t i, DType dtype, Dims dims, Reals contents) const;
  void set_sequence(std::size_t i, DType dtype, std::vector<ShapedValue> elements) const;
  void set_value(std::size_t i, const ShapedValue& value) const;
  /// The output has input's dtype, dims and contents.
  void pass(std::size_t output, std::size_t input) const { set_value(output, value(input)); }
  /// The same without its contents.
  void same_shape(std::size_t output, std::size_t input) const { set(output, dtype(input), dims(input)); }
  /// The value a tensor in the file has.
  ShapedValue value_of(const TensorData& tensor) const;
  /// Marks all outputs as bounds, and says why.
  void bounded(std::string_view why) const;

  /// Throws Error(bad_input): `why`, then the inputs with their shapes; where: file and node.
  [[noreturn]] void fail(const std::string& why, std::string hint = {}) const;
  /// "model.onnx, node 12 \"/layer/MatMul\"".
  std::string where() const;

 private:
  const Node& node_;
  ShapedGraph& graph_;
};

using ShapeRule = void (*)(const NodeShaper&);

struct OperatorRule {
  std::string_view op_type;
  ShapeRule rule;
};

}  // namespace headroom
