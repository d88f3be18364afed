// ShapedGraph: the graph with every dimension a number.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.h"
#include "estimator/base/dims.h"
#include "estimator/base/dtype.h"
#include "estimator/read/graph.h"

namespace headroom {

/// Contents of a small tensor known before the run: shape arithmetic, constants, masks of positions folded so far.
/// Integers and booleans stand in `integers`, floating-point numbers in `reals`; element order is row-major.
struct KnownContents {
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
};

/// What is known of one value once the dimensions are bound.
struct ShapedValue {
  enum class Kind : std::uint8_t {
    unknown,  ///< never produced (dead branch) or absent
    tensor,
    sequence,  ///< `elements` are its tensors
    optional_none,
  };
  Kind kind = Kind::unknown;
  DType dtype = DType::undefined;
  Dims dims;
  std::shared_ptr<const KnownContents> contents;  ///< null: not known
  std::shared_ptr<const std::vector<ShapedValue>> elements;
  bool upper_bound = false;  ///< dims depend on data; they are the largest possible

  bool is_tensor() const { return kind == Kind::tensor; }
  std::int64_t count() const { return element_count(dims); }
  /// The single integer (also from a bool) or number a known one-element tensor holds.
  std::optional<std::int64_t> integer() const;
  std::optional<double> number() const;
};

/// A node that runs: dead branches of If are gone, the taken one stands here in place of the If.
struct ShapedNode {
  const Node* node = nullptr;
  /// Loop, Scan, an If whose condition is not known: the bodies, each shaped once; else empty.
  std::vector<std::shared_ptr<const struct ShapedBody>> bodies;
  /// Loop, Scan: number of iterations (a bound when `trip_count_is_bound`); 1 otherwise.
  std::int64_t trip_count = 1;
  bool trip_count_is_bound = false;
};

struct ShapedBody {
  const Graph* graph = nullptr;
  std::vector<ShapedNode> nodes;
};

/// What a symbolic dimension was taken for.
enum class DimMeaning : std::uint8_t { unknown, batch, sequence, other, past, spatial };

struct BoundDim {
  std::string name;
  std::int64_t value = 0;
  DimMeaning meaning = DimMeaning::other;
  std::string source;  ///< "--batch", "--dim seq=64", "--shape x", "fixed by the file"
};

struct ShapedInput {
  ValueId value;
  std::string_view name;
  DType dtype = DType::undefined;
  Dims dims;
  int batch_axis = -1;       ///< axis that --batch binds, -1 if none
  int sequence_axis = -1;    ///< axis that --seq binds, -1 if none
  bool shape_given = false;  ///< the user named this input in --shape
};

struct ShapedGraph {
  const Model* model = nullptr;
  std::vector<ShapedNode> nodes;    ///< nodes that run, topological order; dead ones (no path to an output) are kept
  std::vector<ShapedValue> values;  ///< by ValueId
  std::vector<ValueId>
      same_as;  ///< by ValueId: the value this one stands for (If outputs, Identity of a body); itself otherwise
  std::vector<ShapedInput> inputs;
  std::vector<ValueId> outputs;
  std::vector<BoundDim> dims;
  Diagnostics diagnostics;

  ValueId resolve(ValueId v) const {
    while (v.valid() && same_as[v.at()] != v) v = same_as[v.at()];
    return v;
  }
  const ShapedValue& at(ValueId v) const { return values[resolve(v).at()]; }
};

/// How the user bound the dimensions.
struct Bindings {
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> sequence;
  std::map<std::string, std::int64_t, std::less<>> dims;                 ///< --dim NAME=N
  std::map<std::string, std::vector<std::int64_t>, std::less<>> shapes;  ///< --shape INPUT=2x3x224x224
};

/// Binds every symbolic dimension and infers every shape. Throws Error(bad_input) naming node, operator, inputs and
/// why, or Error(usage) listing the dims that are not clear, with the command that would work.
ShapedGraph bind(const Model& model, const Bindings& bindings);

}  // namespace headroom
