// What optimizers, gradient clipping and GradScaler call: operators on lists of tensors
// (aten/src/ATen/native/cuda/Foreach*.cu, FusedAdam*.cu, AmpKernels.cu).
#include <algorithm>

#include "estimator/base/error.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

/// One output a tensor, in the list's order.
Outputs each_like(Shadow& m, Args a) {
  std::vector<Tensor> results;
  for (const Value& v : a.list(0)) results.push_back(m.empty_like(v.tensor()));
  return {std::move(results)};
}

/// _foreach_pow.ScalarAndTensor (number, exponents).
Outputs each_like_second(Shadow& m, Args a) {
  std::vector<Tensor> results;
  for (const Value& v : a.list(1)) results.push_back(m.empty_like(v.tensor()));
  return {std::move(results)};
}

/// One scalar a tensor. Norms are gathered in one buffer first, one place a chunk of 65,536 elements of the largest.
Outputs each_reduced(Shadow& m, const ValueList& tensors, bool buffered) {
  if (tensors.empty()) return {std::vector<Tensor>{}};
  constexpr std::int64_t chunk = 65536;
  std::int64_t chunks = 0;
  for (const Value& v : tensors) chunks = std::max(chunks, (v.tensor()->count() + chunk - 1) / chunk);
  const DType dtype = tensors[0].tensor()->dtype;
  const DType accumulated = is_half(dtype) && buffered ? DType::f32 : dtype;
  const auto buffer = m.scratch(bytes_of(accumulated, checked_mul(static_cast<std::int64_t>(tensors.size()), chunks)));
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < tensors.size(); ++i) results.push_back(m.empty({}, dtype));
  return {std::move(results)};
}

Outputs foreach_norm(Shadow& m, Args a) { return each_reduced(m, a.list(0), true); }
Outputs foreach_max(Shadow& m, Args a) { return each_reduced(m, a.list(0), false); }

// clang-format off
constexpr std::string_view unary[] = {
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma",
    "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh",
    "sqrt", "tan", "tanh", "trunc"};
constexpr std::string_view with_overloads[] = {
    "add.List", "add.Scalar", "add.ScalarList", "add.Tensor", "addcdiv.Scalar", "addcdiv.ScalarList",
    "addcdiv.Tensor", "addcmul.Scalar", "addcmul.ScalarList", "addcmul.Tensor", "clamp_max.List",
    "clamp_max.Scalar", "clamp_max.ScalarList", "clamp_min.List", "clamp_min.Scalar", "clamp_min.ScalarList",
    "div.List", "div.Scalar", "div.ScalarList", "div.Tensor", "lerp.List", "lerp.Scalar", "lerp.ScalarList",
    "maximum.List", "maximum.Scalar", "maximum.ScalarList", "minimum.List", "minimum.Scalar", "minimum.ScalarList",
    "mul.List", "mul.Scalar", "mul.ScalarList", "mul.Tensor", "pow.List", "pow.Scalar", "pow.ScalarList",
    "sub.List", "sub.Scalar", "sub.ScalarList"};
// clang-format on

constexpr auto kernel = Operator::Kind::kernel, silent = Operator::Kind::silent;

/// Silent ones write in place and return nothing.
constexpr Operator others[] = {
    {"aten::_foreach_norm.Scalar", kernel, foreach_norm},
    {"aten::_foreach_max", kernel, foreach_max},
    {"aten::_foreach_pow.ScalarAndTensor", kernel, each_like_second},
    {"aten::_foreach_copy_", silent},
    {"aten::_foreach_zero_", silent},
    {"aten::_fused_adam_", silent},
    {"aten::_fused_adam_.tensor_lr", silent},
    {"aten::_fused_adamw_", silent},
    {"aten::_fused_adamw_.tensor_lr", silent},
    {"aten::_fused_sgd_", silent},
    {"aten::_fused_sgd_.tensor_lr", silent},
    {"aten::_fused_adagrad_", silent},
    {"aten::_fused_adagrad_.tensor_lr", silent},
    {"aten::_amp_foreach_non_finite_check_and_unscale_", silent},
    {"aten::_amp_update_scale_", kernel, in_place},
};

/// Names of all operators on lists, kept for the table's views.
const std::vector<std::string>& list_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> r;
    for (const std::string_view op : unary) {
      r.push_back("aten::_foreach_" + std::string(op));
      r.push_back("aten::_foreach_" + std::string(op) + "_");
    }
    for (const std::string_view op : with_overloads) {
      const auto dot = op.find('.');
      r.push_back("aten::_foreach_" + std::string(op));
      r.push_back("aten::_foreach_" + std::string(op.substr(0, dot)) + "_" + std::string(op.substr(dot)));
    }
    return r;
  }();
  return names;
}

std::vector<Operator> every_operator() {
  std::vector<Operator> table(std::begin(others), std::end(others));
  const auto& names = list_names();
  // Out-of-place and in-place forms alternate.
  for (std::size_t i = 0; i < names.size(); ++i)
    table.push_back(i % 2 == 0 ? Operator{names[i], kernel, each_like} : Operator{names[i], silent});
  return table;
}

}  // namespace

std::span<const Operator> optimizer_operators() {
  static const std::vector<Operator> table = every_operator();
  return table;
}

}  // namespace headroom::shadow
