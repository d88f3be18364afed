// Autograd: nodes, edges, saved variables and the engine, as torch/csrc/autograd has them. Order of releases and
// accumulations: facts measured on recorded traces (simulation rules 2-5).
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "estimator/program/program.h"
#include "estimator/shadow/tensor.h"
#include "estimator/shadow/value.h"

namespace headroom::shadow {

class Portrait;
class Shadow;

struct Edge {
  Ref<Node> node;
  std::uint32_t input_nr = 0;
};

/// Size and dtype of a forward output: what its gradient is brought to (validate_outputs).
struct InputMetadata {
  Dims sizes;
  DType dtype = DType::f32;
};

using Gradients = boost::container::small_vector<Tensor, 3>;

class Node {
 public:
  std::uint32_t owners = 0;
  std::uint64_t sequence = 0;  ///< later nodes run first; AccumulateGrad has the largest
  boost::container::small_vector<Edge, 3> next;
  boost::container::small_vector<InputMetadata, 1> inputs;  ///< of the forward outputs, by output number
  // Scratch of the engine, valid during one backward.
  std::uint32_t dependencies = 0;
  std::uint32_t visit = 0;
  std::int32_t buffer = -1;
  std::uint64_t number = 0;  ///< scratch of Portrait
  ModuleId module;           ///< of the forward call
  std::int32_t site = -1;    ///< Recorder text of the forward call

  virtual ~Node() = default;
  virtual std::string_view name() const = 0;
  /// Gradients of the forward inputs, one per edge. `grads` has one entry per forward output; undefined ones are empty.
  virtual Gradients apply(Shadow& m, const Gradients& grads) = 0;
  /// release_variables: saved inputs first, alphabetically, then saved results.
  virtual void release() {}
  /// Adds what the node holds besides its edges; false when it cannot be compared.
  virtual bool portray(Portrait&) const { return false; }
  static void destroy(Node* n);
};

/// Holds a tensor for backward. Under a checkpoint's hooks it holds a place in the segment instead.
class SavedVariable {
 public:
  SavedVariable() = default;
  /// `is_output`: a result of the node's own call (saved without its grad_fn, so that no cycle appears).
  SavedVariable(Shadow& m, const Tensor& t, bool is_output);
  SavedVariable(SavedVariable&&) noexcept;
  SavedVariable& operator=(SavedVariable&&) noexcept;
  ~SavedVariable();

  bool defined() const { return tensor_ || holder_; }
  Tensor unpack(Shadow& m) const;
  void reset();
  bool portray(Portrait& p) const;

 private:
  Tensor tensor_;
  std::shared_ptr<struct CheckpointHolder> holder_;
  bool counted_ = false;
};

/// The edge that leads from `t` backwards: its grad_fn, or its AccumulateGrad; no edge when it needs no gradient.
Edge gradient_edge(Shadow& m, const Tensor& t);

/// torch::autograd::backward(roots, grads): runs the graph on the autograd thread; also from within a node.
void run_backward(Shadow& m, std::span<const Tensor> roots, std::vector<Tensor> grads);

}  // namespace headroom::shadow
