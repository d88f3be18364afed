// Softmax and its relatives (aten/src/ATen/native/cuda/SoftMax.cu, SoftMax.cpp).
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/kernels/reduce.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

/// _softmax, _log_softmax (self, dim, half_to_float): in float32 from half when asked to.
Outputs softmax(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const DType dtype = a.boolean(2) ? DType::f32 : x->dtype;
  Tensor out = empty_beside(m, x, x->sizes, dtype);
  const Tensor input = m.contiguous(x);
  return {out};
}

/// (grad_output, output, dim, input_dtype): the product grad·output lives beside the result.
Outputs softmax_backward(Shadow& m, Args a) {
  const Tensor& grad = a.tensor(0);
  Tensor out = empty_beside(m, grad, grad->sizes, a.dtype(3, grad->dtype));
  const std::array<Value, 2> inputs{a[0], a[1]};
  const Tensor product = elementwise(m, a.tensor(1)->dtype, inputs);
  return {out};
}

Outputs log_softmax_backward(Shadow& m, Args a) {
  const Tensor& grad = a.tensor(0);
  Tensor out = empty_beside(m, grad, grad->sizes, a.dtype(3, grad->dtype));
  const Tensor contiguous_grad = m.contiguous(grad);
  const Tensor contiguous_output = m.contiguous(a.tensor(1));
  return {out};
}

/// Rows that are masked entirely become zero: a mask, its reduction, and the zero.
Outputs safe_softmax(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const DType dtype = a.dtype(2, x->dtype);
  const Tensor input = dtype == x->dtype ? x : m.empty_like(x, dtype);
  Tensor out = empty_beside(m, x, x->sizes, dtype);
  const Tensor copy = m.contiguous(input);
  const Tensor masked = m.empty_like(input, DType::b8);
  const Tensor masked_rows = reduce(m, masked, {a.integer(1)}, true, DType::b8, {1});
  const Tensor zero = empty_beside(m, x, {}, dtype);
  return {out};
}

/// softmax.int, log_softmax.int: float16 with dtype=float32 is converted inside the kernel (bfloat16 is not).
template <OperatorName leaf>
Outputs of_dtype(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const DType dtype = a.dtype(2, x->dtype);
  if (!x->host && x->dtype == DType::f16 && dtype == DType::f32) return m.all(leaf.view(), x, a[1], true);
  const Tensor input = dtype == x->dtype ? x : m.one("aten::to.dtype", x, dtype);
  return m.all(leaf.view(), input, a[1], false);
}

constexpr auto kernel = Operator::Kind::kernel;
constexpr auto composite = Operator::Kind::composite;

constexpr Operator operators[] = {
    {"aten::_softmax", kernel, softmax},
    {"aten::_log_softmax", kernel, softmax},
    {"aten::_softmax_backward_data", kernel, softmax_backward},
    {"aten::_log_softmax_backward_data", kernel, log_softmax_backward},
    {"aten::_safe_softmax", kernel, safe_softmax},
    {"aten::softmax.int", composite, of_dtype<"aten::_softmax">},
    {"aten::log_softmax.int", composite, of_dtype<"aten::_log_softmax">},
    {"aten::special_softmax", composite, of_dtype<"aten::_softmax">},
    {"aten::special_log_softmax", composite, of_dtype<"aten::_log_softmax">},
};

}  // namespace

std::span<const Operator> softmax_operators() { return operators; }

}  // namespace headroom::shadow
