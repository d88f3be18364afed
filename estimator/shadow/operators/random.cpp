// Random numbers and dropout (aten/src/ATen/native/Dropout.cpp, cuda/Dropout.cu, Distributions.cpp).
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

/// The four TensorOptions arguments from `first` on.
template <std::size_t size, std::size_t options>
Outputs of_size(Shadow& m, Args a) {
  const DType dtype = a.dtype(options, DType::f32);
  return {names_host(a, options + 2) ? m.host_tensor(a.integers(size), dtype) : m.empty(a.integers(size), dtype)};
}

template <std::size_t options>
Outputs like(Shadow& m, Args a) {
  return {empty_in_format(m, a.tensor(0), a.dtype(options, a.tensor(0)->dtype),
                          memory_format(a, options + 4, MemoryFormat::preserve))};
}

Outputs bernoulli(Shadow& m, Args a) { return {empty_beside(m, a.tensor(0), a.tensor(0)->sizes)}; }

/// normal with tensor parameters: broadcast size.
Outputs normal(Shadow& m, Args a) {
  const auto parameters = a.values().first(2);
  return {elementwise(m, result_type(parameters), parameters)};
}

/// (self, num_samples, replacement): the largest quotients of probabilities and exponential noise.
Outputs multinomial(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Tensor quotients = empty_in_format(m, x, DType::undefined, MemoryFormat::preserve);
  return {m.all("aten::topk", quotients, a[1], -1, true, true)[1]};
}

/// The mask comes before the output.
Outputs native_dropout(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (a.given(2) && !a.boolean(2)) {
    Tensor out = empty_in_format(m, x, DType::undefined, MemoryFormat::preserve);
    return {out, empty_beside(m, x, x->sizes, DType::b8)};
  }
  Tensor mask = empty_in_format(m, x, DType::b8, MemoryFormat::preserve);
  return {empty_in_format(m, x, DType::undefined, MemoryFormat::preserve), mask};
}

/// (grad_output, mask, scale): contiguous, or channels_last where the gradient is; not in its very strides.
Outputs native_dropout_backward(Shadow& m, Args a) {
  const Tensor& grad = a.tensor(0);
  const bool last = suggests_channels_last(*grad);
  return {empty_in_format(m, grad, DType::undefined, last ? MemoryFormat::channels_last : MemoryFormat::contiguous)};
}

// ---- composites ---------------------------------------------------------------------------------------------------

/// Noise of the input's size, or one value a channel (feature dropout).
Tensor noise_for(Shadow& m, const Tensor& x, bool feature) {
  if (!feature) return m.one("aten::empty_like", x);
  Dims sizes(x->dim(), 1);
  for (std::size_t i = 0; i < std::min<std::size_t>(2, sizes.size()); ++i) sizes[i] = x->sizes[i];
  return m.one("aten::new_empty", x, sizes);
}

/// _dropout_impl: (input, p, train).
template <bool feature, bool alpha, bool inplace>
Outputs masked_dropout(Shadow& m, Args a) {
  const Value& x = a[0];
  const double p = a.real(1);
  if (p == 0 || !a.boolean(2) || x.tensor()->count() == 0) return {x};
  const std::string_view multiply = inplace ? "aten::mul_.Tensor" : "aten::mul.Tensor";
  if (p == 1) return m.all(multiply, x, m.one("aten::zeros", Dims{}, x.tensor()->dtype));
  const Tensor noise = noise_for(m, x.tensor(), feature);
  m.all("aten::bernoulli_.float", noise, 1 - p);
  if constexpr (!alpha) {
    m.all("aten::div_.Scalar", noise, 1 - p);
    return m.all(multiply, x, noise);
  } else {
    const Tensor shift = m.one("aten::add.Scalar", noise, -1);
    m.all("aten::mul_.Scalar", shift, p);
    m.all("aten::add_.Scalar", shift, p);
    m.all("aten::mul_.Scalar", noise, p);
    return m.all("aten::add_.Tensor", m.one(multiply, x, noise), shift);
  }
}

Outputs dropout(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const bool fused = a.boolean(2) && !x->host && a.real(1) > 0 && a.real(1) < 1 && x->count() > 0;
  if (!fused) return masked_dropout<false, false, false>(m, a);
  return {m.all("aten::native_dropout", x, a[1], true)[0]};
}

constexpr auto kernel = Operator::Kind::kernel;
constexpr auto composite = Operator::Kind::composite;

constexpr Operator operators[] = {
    {"aten::rand", kernel, of_size<0, 1>},
    {"aten::rand.generator", kernel, of_size<0, 2>},
    {"aten::randn", kernel, of_size<0, 1>},
    {"aten::randn.generator", kernel, of_size<0, 2>},
    {"aten::randint", kernel, of_size<1, 2>},
    {"aten::randint.low", kernel, of_size<2, 3>},
    {"aten::normal.float_float", kernel, of_size<2, 4>},
    {"aten::rand_like", kernel, like<1>},
    {"aten::randn_like", kernel, like<1>},
    {"aten::randint_like", kernel, like<2>},
    {"aten::randint_like.low_dtype", kernel, like<3>},
    {"aten::bernoulli", kernel, bernoulli},
    {"aten::bernoulli.p", kernel, bernoulli},
    {"aten::bernoulli.Tensor", kernel, bernoulli},
    {"aten::bernoulli_.float", kernel, in_place},
    {"aten::bernoulli_.Tensor", kernel, in_place},
    {"aten::normal.Tensor_Tensor", kernel, normal},
    {"aten::normal.Tensor_float", kernel, normal},
    {"aten::normal.float_Tensor", kernel, normal},
    {"aten::normal_", kernel, in_place},
    {"aten::uniform_", kernel, in_place},
    {"aten::exponential_", kernel, in_place},
    {"aten::geometric_", kernel, in_place},
    {"aten::cauchy_", kernel, in_place},
    {"aten::log_normal_", kernel, in_place},
    {"aten::random_", kernel, in_place},
    {"aten::random_.from", kernel, in_place},
    {"aten::random_.to", kernel, in_place},
    {"aten::multinomial", kernel, multinomial},
    {"aten::native_dropout", kernel, native_dropout},
    {"aten::native_dropout_backward", kernel, native_dropout_backward},
    {"aten::dropout", composite, dropout},
    {"aten::dropout_", composite, masked_dropout<false, false, true>},
    {"aten::feature_dropout", composite, masked_dropout<true, false, false>},
    {"aten::feature_dropout_", composite, masked_dropout<true, false, true>},
    {"aten::alpha_dropout", composite, masked_dropout<false, true, false>},
    {"aten::alpha_dropout_", composite, masked_dropout<false, true, true>},
    {"aten::feature_alpha_dropout", composite, masked_dropout<true, true, false>},
    {"aten::feature_alpha_dropout_", composite, masked_dropout<true, true, true>},
};

}  // namespace

std::span<const Operator> random_operators() { return operators; }

}  // namespace headroom::shadow
