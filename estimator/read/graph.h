// Graph: what an ONNX file says, without its weights.
//
// Everything a Model holds lives in its arena or in the mapped file, so names are string_views and lists are spans;
// both stay valid as long as the Model. Model-local functions are already inlined, nodes are in topological order, and
// names are resolved: a value is a number, unique over the graph and all its sub-graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/base/diagnostic.h"
#include "estimator/base/dtype.h"
#include "estimator/base/ids.h"

namespace headroom {

using ValueId = Id<struct ValueTag>;

/// A tensor's header, and where its bytes are. Bytes are never copied unless they are few.
struct TensorData {
  enum class Where : std::uint8_t {
    nowhere,   ///< no bytes in the file (stripped), dims and dtype only
    raw,       ///< `bytes`: little-endian elements, packed, inside the mapped file
    decoded,   ///< `bytes`: little-endian elements, decoded from typed fields into the arena (at most 64 KiB)
    typed,     ///< in typed fields of the file, too many to decode: not readable
    external,  ///< in another file: `location`, `offset`, `length`
  };
  std::string_view name;
  DType dtype = DType::undefined;
  std::span<const std::int64_t> dims;
  Where where = Where::nowhere;
  std::span<const std::byte> bytes;  ///< raw and decoded only
  std::string_view location;         ///< external only: relative to the model's folder, as the file says
  std::int64_t offset = 0;
  std::int64_t length = -1;
};

struct Graph;

struct Attribute {
  enum class Kind : std::uint8_t { none, real, integer, text, tensor, graph, reals, integers, texts, tensors, graphs };
  std::string_view name;
  Kind kind = Kind::none;
  double real = 0;
  std::int64_t integer = 0;
  std::string_view text;
  const TensorData* tensor = nullptr;
  const Graph* graph = nullptr;
  std::span<const float> reals;
  std::span<const std::int64_t> integers;
  std::span<const std::string_view> texts;
  std::span<const TensorData> tensors;
  std::span<const Graph* const> graphs;
};

/// The node `metadata_props` that name the eager program; empty where the exporter wrote none.
struct NodeMetadata {
  std::string_view fx_node;          ///< pkg.torch.onnx.fx_node
  std::string_view name_scopes;      ///< pkg.torch.onnx.name_scopes
  std::string_view class_hierarchy;  ///< pkg.torch.onnx.class_hierarchy
  std::string_view stack_trace;      ///< pkg.torch.onnx.stack_trace
  std::string_view rewriter_rule;    ///< pkg.onnxscript.rewriter.rule_name
};

struct Node {
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;           ///< "" for the standard domain, also when the file says "ai.onnx"
  std::span<const ValueId> inputs;   ///< an absent optional is an invalid id
  std::span<const ValueId> outputs;  ///< likewise
  std::span<const Attribute> attributes;
  NodeMetadata metadata;
  std::int32_t index = 0;  ///< position in the file, for messages; unique over the whole model after inlining

  const Attribute* attribute(std::string_view attribute_name) const {
    for (const auto& a : attributes)
      if (a.name == attribute_name) return &a;
    return nullptr;
  }
  std::int64_t integer(std::string_view attribute_name, std::int64_t fallback) const {
    const auto* a = attribute(attribute_name);
    return a && a->kind == Attribute::Kind::integer ? a->integer : fallback;
  }
  double real(std::string_view attribute_name, double fallback) const {
    const auto* a = attribute(attribute_name);
    return a && a->kind == Attribute::Kind::real ? a->real : fallback;
  }
  std::string_view text(std::string_view attribute_name, std::string_view fallback = {}) const {
    const auto* a = attribute(attribute_name);
    return a && a->kind == Attribute::Kind::text ? a->text : fallback;
  }
  /// Empty when absent.
  std::span<const std::int64_t> integers(std::string_view attribute_name) const {
    const auto* a = attribute(attribute_name);
    return a && a->kind == Attribute::Kind::integers ? a->integers : std::span<const std::int64_t>{};
  }
  const Graph* graph(std::string_view attribute_name) const {
    const auto* a = attribute(attribute_name);
    return a && a->kind == Attribute::Kind::graph ? a->graph : nullptr;
  }
  /// Input i, or an invalid id when the node has fewer inputs.
  ValueId input(std::size_t i) const { return i < inputs.size() ? inputs[i] : ValueId{}; }
  ValueId output(std::size_t i) const { return i < outputs.size() ? outputs[i] : ValueId{}; }
};

/// One dimension of a declared shape: a number (>= 0), a name, or unknown (-1 and no name).
struct Dim {
  std::int64_t value = -1;
  std::string_view param;
};

/// Declared type of a graph input or output. `value_info` inside the graph is not kept: it is often stale.
struct DeclaredType {
  enum class Kind : std::uint8_t { unknown, tensor, sparse_tensor, sequence, optional, map };
  Kind kind = Kind::unknown;
  DType dtype = DType::undefined;  ///< of the tensor, or of the sequence's or optional's tensors
  bool has_shape = false;
  std::span<const Dim> dims;
};

struct GraphValue {
  ValueId value;
  DeclaredType type;
};

struct Initializer {
  ValueId value;
  TensorData tensor;  ///< of a sparse one: dims of the dense tensor, nowhere
  bool sparse = false;
  std::int64_t stored_count = 0;  ///< sparse: number of stored elements
};

struct Graph {
  std::string_view name;
  std::span<const Node> nodes;                   ///< topological order
  std::span<const GraphValue> inputs;            ///< without those that have an initializer in this graph
  std::span<const GraphValue> defaulted_inputs;  ///< inputs that have an initializer (IR < 4 lists every weight so)
  std::span<const GraphValue> outputs;
  std::span<const Initializer> initializers;
};

/// A whole file. Movable, not copyable: it owns the mapping and the arena.
class Model {
 public:
  Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const Graph& graph() const { return *graph_; }
  std::size_t value_count() const { return names_.size(); }
  /// Name of a value as the file spells it (for a value made by inlining: with the call's scope in front).
  std::string_view name_of(ValueId v) const { return v.valid() ? names_[v.at()] : std::string_view{}; }
  /// Of the file's bytes without weight payloads (FNV-1a, 64 bit).
  std::uint64_t hash() const;
  /// Opset of a domain ("" = standard); 0 when the file imports none.
  std::int64_t opset(std::string_view domain = {}) const;

  std::filesystem::path path;
  std::string_view producer;
  std::string_view producer_version;
  std::int64_t ir_version = 0;
  std::int64_t file_bytes = 0;
  std::vector<std::pair<std::string_view, std::int64_t>> opsets;
  Diagnostics diagnostics;

 private:
  friend class ModelBuilder;
  struct Storage;  // mapping and arena
  std::unique_ptr<Storage> storage_;
  const Graph* graph_ = nullptr;
  std::vector<std::string_view> names_;
};

struct ReadLimits {
  std::int64_t max_nodes_after_inlining = 4'000'000;
  int max_depth = 64;  ///< of sub-graphs and of function calls
};

/// Reads an ONNX file of any size. Throws Error(bad_input) with the file, the byte offset or the node, and a hint.
Model read_model(const std::filesystem::path& path, const ReadLimits& limits = {});

/// The same from memory (tests, fuzzing); `bytes` must outlive the Model. External data is looked up in `folder`.
Model read_model(std::span<const std::byte> bytes, const std::filesystem::path& folder, const ReadLimits& limits = {});

/// A few bytes of an initializer, wherever they are: inline or external data inside the model's own folder (links
/// resolved). Empty when they cannot be had; never an error. For telling tied weights.
std::vector<std::byte> weight_bytes(const Model& model, const TensorData& tensor, std::int64_t offset,
                                    std::int64_t count);

}  // namespace headroom
