// Operator: the rule of one ATen operator on the shadow machine, and what a rule may use.
//
// A *kernel* runs below autograd: it makes the outputs, the temporaries and the workspaces, in the order in which the
// CUDA kernel's host code makes them. A *composite* runs above autograd, as PyTorch's CompositeImplicitAutograd
// functions do: it calls other operators through the machine. What is saved for backward, which dtype autocast casts
// to and how gradients are computed comes from PyTorch's tables (shadow/tables), not from here.
#pragma once

#include <span>
#include <string_view>

#include "estimator/shadow/value.h"

namespace headroom::shadow {

class Shadow;

/// Arguments in the schema's order, defaults filled in.
class Args {
 public:
  explicit Args(std::span<const Value> values) : values_(values) {}

  std::size_t size() const { return values_.size(); }
  const Value& operator[](std::size_t i) const { return values_[i]; }
  bool given(std::size_t i) const { return i < values_.size() && !values_[i].none(); }
  /// The tensor; undefined where None was passed.
  const Tensor& tensor(std::size_t i) const { return values_[i].tensor(); }
  std::int64_t integer(std::size_t i) const { return values_[i].integer(); }
  double real(std::size_t i) const { return values_[i].real(); }
  bool boolean(std::size_t i) const { return values_[i].boolean(); }
  const Dims& integers(std::size_t i) const { return values_[i].integers(); }
  const ValueList& list(std::size_t i) const { return values_[i].list(); }
  std::string_view text(std::size_t i) const { return values_[i].text(); }
  /// The dtype argument, or `fallback` where None was passed.
  DType dtype(std::size_t i, DType fallback) const { return given(i) ? values_[i].dtype() : fallback; }
  std::span<const Value> values() const { return values_; }

 private:
  std::span<const Value> values_;
};

using Rule = Outputs (*)(Shadow&, Args);

struct Operator {
  enum class Kind : std::uint8_t {
    kernel,
    composite,
    factory,  ///< makes tensors, without a derivative and with less work than it takes to know the call again
    silent,   ///< returns nothing and leaves memory alone: no rule, it is passed over
  };
  std::string_view name;  ///< with overload: "aten::add.Tensor"
  Kind kind;
  Rule rule = nullptr;
};

/// The families. The list in operators.cpp is the only registry; `headroom ops` prints it.
std::span<const Operator> view_operators();
std::span<const Operator> copy_operators();
std::span<const Operator> elementwise_operators();
std::span<const Operator> factory_operators();
std::span<const Operator> reduction_operators();
std::span<const Operator> matmul_operators();
std::span<const Operator> convolution_operators();
std::span<const Operator> normalization_operators();
std::span<const Operator> attention_operators();
std::span<const Operator> indexing_operators();
std::span<const Operator> softmax_operators();
std::span<const Operator> loss_operators();
std::span<const Operator> pooling_operators();
std::span<const Operator> resampling_operators();
std::span<const Operator> random_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> optimizer_operators();

/// All families, in that order.
std::span<const std::span<const Operator>> operator_families();

}  // namespace headroom::shadow
