// Elementwise operators, by what their output's dtype is: that of the inputs, floating point, or bool. TensorIterator
// allocates the output and nothing else; casts happen in the kernel's registers (aten/src/ATen/native/cuda/Loops.cuh).
#include "estimator/base/error.h"
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

/// The first `n` arguments are what the iterator sees: tensors or numbers.
template <std::size_t n>
std::span<const Value> operands(Args a) {
  return a.values().first(std::min(n, a.size()));
}

/// Output in the common dtype of the operands: neg, add, clamp.
template <std::size_t n>
Outputs same(Shadow& m, Args a) {
  return {elementwise(m, result_type(operands<n>(a)), operands<n>(a))};
}
/// The second argument comes first in the iterator, and with it its layout (ATen/native/Activation.cpp).
Outputs same_reversed(Shadow& m, Args a) {
  const std::array<Value, 2> inputs{a[1], a[0]};
  return {elementwise(m, result_type(inputs), inputs)};
}
/// Integers become float32: exp, div.
template <std::size_t n>
Outputs floating(Shadow& m, Args a) {
  return {elementwise(m, float_result_type(operands<n>(a)), operands<n>(a))};
}
/// Comparisons and logic.
template <std::size_t n>
Outputs boolean(Shadow& m, Args a) {
  return {elementwise(m, DType::b8, operands<n>(a))};
}

DType real_of(DType t) { return t == DType::c128 ? DType::f64 : t == DType::c64 ? DType::f32 : t; }

/// abs, angle: real of complex, which first goes through a complex result (aten-tables section 6).
Outputs magnitude(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Tensor out = elementwise(m, real_of(x->dtype), operands<1>(a));
  if (is_complex(x->dtype)) elementwise(m, x->dtype, operands<1>(a));
  return {out};
}

/// div with a rounding mode keeps integers; true division does not.
Outputs div_mode(Shadow& m, Args a) { return a.given(2) ? same<2>(m, a) : floating<2>(m, a); }

/// pow(number, tensor): the number becomes a device scalar after the output.
Outputs pow_scalar(Shadow& m, Args a) {
  Tensor out = elementwise(m, result_type(operands<2>(a)), operands<2>(a));
  if (!out->host) m.scratch(Bytes(8));
  return {out};
}

/// where: both sides are brought to one dtype first; then condition and sides are iterated over.
Outputs where_self(Shadow& m, Args a) {
  const DType dtype = result_type(a.values().subspan(1, 2));
  const auto promoted = [&](const Value& v) {
    return v.is_tensor() && v.tensor()->dtype != dtype
               ? Value(empty_in_format(m, v.tensor(), dtype, MemoryFormat::preserve))
               : v;
  };
  const Value self = promoted(a[1]), other = promoted(a[2]);
  const std::array<Value, 3> inputs{a[0], self, other};
  return {elementwise(m, dtype, inputs)};
}

/// where with a number: it becomes a tensor on the device.
Outputs where_scalars(Shadow& m, Args a) {
  const DType dtype = result_type(a.values().subspan(1, 2));
  const auto tensor = [&](const Value& v) { return v.is_number() ? Value(m.one("aten::scalar_tensor", v, dtype)) : v; };
  const Value other = tensor(a[2]);
  const Value self = tensor(a[1]);
  return m.all("aten::where.self", a[0], self, other);
}

/// masked_fill: self expanded to the mask, cloned contiguously, filled in place.
Outputs masked_fill(Shadow& m, Args a) {
  return {empty_beside(m, a.tensor(0), broadcast_sizes(operands<2>(a)), a.tensor(0)->dtype)};
}

/// complex(re, im), polar(abs, angle).
Outputs to_complex(Shadow& m, Args a) {
  const DType dtype = a.tensor(0)->dtype == DType::f64 ? DType::c128 : DType::c64;
  return {elementwise(m, dtype, operands<2>(a))};
}

Outputs glu(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Dims sizes = x->sizes;
  const std::int64_t rank = static_cast<std::int64_t>(sizes.size()),
                     dim = a.integer(1) < 0 ? a.integer(1) + rank : a.integer(1);
  if (dim < 0 || dim >= rank) throw bad_input("glu over a dimension that " + text_of(sizes) + " does not have");
  sizes[static_cast<std::size_t>(dim)] /= 2;
  return {empty_beside(m, x, sizes)};
}

Outputs glu_backward(Shadow& m, Args a) { return {empty_beside(m, a.tensor(1), a.tensor(1)->sizes)}; }

/// The buffer is empty on CUDA.
Outputs log_sigmoid_forward(Shadow& m, Args a) {
  Tensor out = elementwise(m, a.tensor(0)->dtype, operands<1>(a));
  return {out, empty_beside(m, out, {0})};
}

Outputs log_sigmoid(Shadow& m, Args a) { return {m.all("aten::log_sigmoid_forward", a[0])[0]}; }

/// grad_input and grad_weight, one value an element; the engine sums the weight's to its size.
Outputs prelu_backward(Shadow& m, Args a) {
  const DType dtype = result_type(operands<3>(a));
  Tensor input = elementwise(m, dtype, operands<3>(a));
  return {input, elementwise(m, dtype, operands<3>(a))};
}

Outputs elu_backward(Shadow& m, Args a) {
  const std::array<Value, 2> inputs{a[0], a[5]};
  return {elementwise(m, result_type(inputs), inputs)};
}

/// prelu: the weight is viewed along the channel dimension.
Outputs prelu(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Value weight = a[1];
  if (weight.tensor()->count() != 1 || weight.tensor()->dim() != 0) {
    Dims sizes(std::max<std::size_t>(x->dim(), 1), 1);
    if (x->dim() >= 2) sizes[1] = weight.tensor()->count();
    if (weight.tensor()->sizes != sizes) weight = m.one("aten::reshape", weight, sizes);
  }
  return m.all("aten::_prelu_kernel", x, weight);
}

/// rrelu in training keeps its noise; otherwise it is leaky_relu.
Outputs rrelu(Shadow& m, Args a) {
  const Tensor noise = m.one("aten::empty_like", a[0], Value(), Value(), Value(), Value(), "contiguous_format");
  return m.all("aten::rrelu_with_noise", a[0], noise, a[1], a[2], a[3]);
}

Outputs float_power(Shadow& m, Args a) {
  const auto doubled = [&](const Value& v) {
    return v.is_tensor() ? Value(m.one("aten::to.dtype", v, DType::f64)) : v;
  };
  const Value exponent = doubled(a[1]), base = doubled(a[0]);
  return m.all(base.is_tensor() ? exponent.is_tensor() ? "aten::pow.Tensor_Tensor" : "aten::pow.Tensor_Scalar"
                                : "aten::pow.Scalar",
               base, exponent);
}

Outputs square(Shadow& m, Args a) { return m.all("aten::pow.Tensor_Scalar", a[0], 2); }
Outputs square_(Shadow& m, Args a) { return m.all("aten::pow_.Scalar", a[0], 2); }
Outputs selu(Shadow& m, Args a) { return m.all("aten::elu", a[0], 1.6732632423543772, 1.0507009873554805); }
Outputs selu_(Shadow& m, Args a) { return m.all("aten::elu_", a[0], 1.6732632423543772, 1.0507009873554805); }
Outputs relu6(Shadow& m, Args a) { return m.all("aten::hardtanh", a[0], 0, 6); }
Outputs relu6_(Shadow& m, Args a) { return m.all("aten::hardtanh_", a[0], 0, 6); }

Outputs isfinite(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (!is_float(x->dtype)) return m.all("aten::ones_like", x, DType::b8);
  const Tensor magnitudes = m.one("aten::abs", x);
  const Tensor bounded = m.one("aten::ne.Scalar", magnitudes, 1.0);
  const Tensor self = m.one("aten::eq.Tensor", x, x);
  return m.all("aten::mul.Tensor", self, bounded);
}

Outputs isclose(Shadow& m, Args a) {
  Tensor close = m.one("aten::eq.Tensor", a[0], a[1]);
  const Tensor allowed = m.one("aten::add.Scalar", m.one("aten::abs", m.one("aten::mul.Scalar", a[1], a[2])), a[3]);
  const Tensor actual = m.one("aten::abs", m.one("aten::sub.Tensor", a[0], a[1]));
  const Tensor finite = m.one("aten::isfinite", actual);
  m.all("aten::__ior__.Tensor", close, m.one("aten::logical_and", finite, m.one("aten::le.Tensor", actual, allowed)));
  return {close};
}

using Names = std::span<const std::string_view>;

// clang-format off
constexpr std::string_view same_1[] = {
    "aten::neg", "aten::sgn", "aten::sign", "aten::floor", "aten::ceil", "aten::round", "aten::round.decimals",
    "aten::trunc", "aten::frac", "aten::relu", "aten::elu", "aten::celu", "aten::silu", "aten::mish", "aten::gelu",
    "aten::hardswish", "aten::hardsigmoid", "aten::hardtanh", "aten::hardshrink", "aten::softshrink",
    "aten::softplus", "aten::leaky_relu", "aten::threshold", "aten::nan_to_num", "aten::bitwise_not",
    "aten::conj_physical", "aten::_conj_physical", "aten::fill.Scalar", "aten::fill.Tensor", "aten::zero",
    "aten::mvlgamma", "aten::rrelu_with_noise"};
constexpr std::string_view floating_1[] = {
    "aten::exp", "aten::exp2", "aten::expm1", "aten::log", "aten::log2", "aten::log10", "aten::log1p", "aten::sqrt",
    "aten::rsqrt", "aten::reciprocal", "aten::sin", "aten::cos", "aten::tan", "aten::asin", "aten::acos",
    "aten::atan", "aten::sinh", "aten::cosh", "aten::tanh", "aten::asinh", "aten::acosh", "aten::atanh",
    "aten::sigmoid", "aten::erf", "aten::erfc", "aten::erfinv", "aten::lgamma", "aten::digamma", "aten::i0",
    "aten::sinc", "aten::logit", "aten::deg2rad", "aten::rad2deg", "aten::special_entr", "aten::special_erfcx",
    "aten::special_i0e", "aten::special_i1", "aten::special_i1e", "aten::special_log_ndtr", "aten::special_ndtri",
    "aten::special_bessel_j0", "aten::special_bessel_j1"};
constexpr std::string_view boolean_1[] = {
    "aten::isnan", "aten::isinf", "aten::isneginf", "aten::isposinf", "aten::signbit", "aten::logical_not"};
constexpr std::string_view same_2[] = {
    "aten::add.Tensor", "aten::add.Scalar", "aten::sub.Tensor", "aten::sub.Scalar", "aten::rsub.Tensor",
    "aten::rsub.Scalar", "aten::mul.Tensor", "aten::mul.Scalar", "aten::remainder.Tensor", "aten::remainder.Scalar",
    "aten::remainder.Scalar_Tensor", "aten::fmod.Tensor", "aten::fmod.Scalar", "aten::floor_divide",
    "aten::floor_divide.Scalar", "aten::maximum", "aten::minimum", "aten::fmax", "aten::fmin",
    "aten::pow.Tensor_Tensor", "aten::pow.Tensor_Scalar", "aten::hypot", "aten::heaviside", "aten::nextafter",
    "aten::logaddexp", "aten::logaddexp2", "aten::ldexp.Tensor", "aten::gcd", "aten::lcm",
    "aten::bitwise_and.Tensor", "aten::bitwise_and.Scalar", "aten::bitwise_and.Scalar_Tensor",
    "aten::bitwise_or.Tensor", "aten::bitwise_or.Scalar", "aten::bitwise_or.Scalar_Tensor",
    "aten::bitwise_xor.Tensor", "aten::bitwise_xor.Scalar", "aten::bitwise_xor.Scalar_Tensor",
    "aten::bitwise_left_shift.Tensor", "aten::bitwise_left_shift.Tensor_Scalar",
    "aten::bitwise_left_shift.Scalar_Tensor", "aten::bitwise_right_shift.Tensor",
    "aten::bitwise_right_shift.Tensor_Scalar", "aten::bitwise_right_shift.Scalar_Tensor", "aten::__lshift__.Tensor",
    "aten::__lshift__.Scalar", "aten::__rshift__.Tensor", "aten::__rshift__.Scalar", "aten::clamp_min",
    "aten::clamp_min.Tensor", "aten::clamp_max", "aten::clamp_max.Tensor", "aten::_prelu_kernel",
    "aten::sigmoid_backward", "aten::tanh_backward", "aten::gelu_backward",
    "aten::silu_backward", "aten::mish_backward", "aten::hardswish_backward", "aten::hardsigmoid_backward",
    "aten::hardtanh_backward", "aten::hardshrink_backward",
    "aten::softshrink_backward", "aten::softplus_backward", "aten::logit_backward", "aten::log_sigmoid_backward"};
constexpr std::string_view floating_2[] = {
    "aten::div.Tensor", "aten::div.Scalar", "aten::atan2", "aten::xlogy.Tensor", "aten::xlogy.Scalar_Self",
    "aten::xlogy.Scalar_Other", "aten::special_xlog1py", "aten::special_xlog1py.self_scalar",
    "aten::special_xlog1py.other_scalar", "aten::special_zeta", "aten::copysign.Tensor", "aten::copysign.Scalar",
    "aten::igamma", "aten::igammac", "aten::polygamma"};
constexpr std::string_view boolean_2[] = {
    "aten::eq.Tensor", "aten::eq.Scalar", "aten::ne.Tensor", "aten::ne.Scalar", "aten::lt.Tensor",
    "aten::lt.Scalar", "aten::le.Tensor", "aten::le.Scalar", "aten::gt.Tensor", "aten::gt.Scalar",
    "aten::ge.Tensor", "aten::ge.Scalar", "aten::logical_and", "aten::logical_or", "aten::logical_xor"};
constexpr std::string_view same_3[] = {
    "aten::addcmul", "aten::addcdiv", "aten::lerp.Tensor", "aten::clamp", "aten::clamp.Tensor",
    "aten::rrelu_with_noise_backward"};

constexpr std::string_view written[] = {
    "aten::abs_", "aten::acos_", "aten::acosh_", "aten::add_.Scalar", "aten::add_.Tensor", "aten::addcdiv_",
    "aten::addcmul_", "aten::asin_", "aten::asinh_", "aten::atan2_", "aten::atan_", "aten::atanh_",
    "aten::bitwise_and_.Scalar", "aten::bitwise_and_.Tensor", "aten::bitwise_left_shift_.Tensor",
    "aten::bitwise_left_shift_.Tensor_Scalar", "aten::bitwise_not_", "aten::bitwise_or_.Scalar",
    "aten::bitwise_or_.Tensor", "aten::bitwise_right_shift_.Tensor", "aten::bitwise_right_shift_.Tensor_Scalar",
    "aten::bitwise_xor_.Scalar", "aten::bitwise_xor_.Tensor", "aten::__ilshift__.Scalar",
    "aten::__ilshift__.Tensor", "aten::__irshift__.Scalar", "aten::__irshift__.Tensor", "aten::ceil_",
    "aten::celu_", "aten::clamp_", "aten::clamp_.Tensor", "aten::clamp_max_", "aten::clamp_max_.Tensor",
    "aten::clamp_min_", "aten::clamp_min_.Tensor", "aten::conj_physical_", "aten::copysign_.Scalar",
    "aten::copysign_.Tensor", "aten::cos_", "aten::cosh_", "aten::deg2rad_", "aten::digamma_", "aten::div_.Scalar",
    "aten::div_.Scalar_mode", "aten::div_.Tensor", "aten::div_.Tensor_mode", "aten::elu_", "aten::eq_.Scalar",
    "aten::eq_.Tensor", "aten::erf_", "aten::erfc_", "aten::erfinv_", "aten::exp2_", "aten::exp_", "aten::expm1_",
    "aten::fill_.Tensor", "aten::floor_", "aten::floor_divide_.Scalar",
    "aten::floor_divide_.Tensor", "aten::fmod_.Scalar", "aten::fmod_.Tensor", "aten::frac_", "aten::gcd_",
    "aten::ge_.Scalar", "aten::ge_.Tensor", "aten::gelu_", "aten::gt_.Scalar", "aten::gt_.Tensor",
    "aten::hardsigmoid_", "aten::hardswish_", "aten::hardtanh_", "aten::heaviside_", "aten::hypot_", "aten::i0_",
    "aten::igamma_", "aten::igammac_", "aten::lcm_", "aten::ldexp_", "aten::le_.Scalar", "aten::le_.Tensor",
    "aten::leaky_relu_", "aten::lerp_.Scalar", "aten::lerp_.Tensor", "aten::lgamma_", "aten::log10_",
    "aten::log1p_", "aten::log2_", "aten::log_", "aten::logical_and_", "aten::logical_not_", "aten::logical_or_",
    "aten::logical_xor_", "aten::logit_", "aten::lt_.Scalar", "aten::lt_.Tensor", "aten::masked_fill_.Scalar",
    "aten::masked_fill_.Tensor", "aten::mish_", "aten::mul_.Scalar", "aten::mul_.Tensor", "aten::nan_to_num_",
    "aten::ne_.Scalar", "aten::ne_.Tensor", "aten::neg_", "aten::nextafter_", "aten::polygamma_",
    "aten::pow_.Scalar", "aten::pow_.Tensor", "aten::rad2deg_", "aten::reciprocal_", "aten::relu_",
    "aten::remainder_.Scalar", "aten::remainder_.Tensor", "aten::round_", "aten::round_.decimals",
    "aten::rrelu_with_noise_", "aten::rsqrt_", "aten::sgn_", "aten::sigmoid_", "aten::sign_", "aten::silu_",
    "aten::sin_", "aten::sinc_", "aten::sinh_", "aten::sqrt_", "aten::sub_.Scalar", "aten::sub_.Tensor",
    "aten::tan_", "aten::tanh_", "aten::threshold_", "aten::trunc_", "aten::xlogy_.Scalar_Other",
    "aten::xlogy_.Tensor", "aten::zero_"};
// clang-format on

constexpr auto kernel = Operator::Kind::kernel;
constexpr auto composite = Operator::Kind::composite;

constexpr Operator others[] = {
    {"aten::abs", kernel, magnitude},
    {"aten::angle", kernel, magnitude},
    {"aten::lerp.Scalar", kernel, same<2>},
    {"aten::threshold_backward", kernel, same_reversed},
    {"aten::leaky_relu_backward", kernel, same_reversed},
    {"aten::elu_backward", kernel, elu_backward},
    {"aten::div.Tensor_mode", kernel, div_mode},
    {"aten::div.Scalar_mode", kernel, div_mode},
    {"aten::pow.Scalar", kernel, pow_scalar},
    {"aten::where.self", kernel, where_self},
    {"aten::where.ScalarSelf", composite, where_scalars},
    {"aten::where.ScalarOther", composite, where_scalars},
    {"aten::where.Scalar", composite, where_scalars},
    {"aten::masked_fill.Scalar", kernel, masked_fill},
    {"aten::masked_fill.Tensor", kernel, masked_fill},
    {"aten::complex", kernel, to_complex},
    {"aten::polar", kernel, to_complex},
    {"aten::glu", kernel, glu},
    {"aten::glu_backward", kernel, glu_backward},
    {"aten::log_sigmoid_forward", kernel, log_sigmoid_forward},
    {"aten::log_sigmoid", composite, log_sigmoid},
    {"aten::_prelu_kernel_backward", kernel, prelu_backward},
    {"aten::prelu", composite, prelu},
    {"aten::rrelu", composite, rrelu},
    {"aten::float_power.Tensor_Tensor", composite, float_power},
    {"aten::float_power.Tensor_Scalar", composite, float_power},
    {"aten::float_power.Scalar", composite, float_power},
    {"aten::square", composite, square},
    {"aten::square_", composite, square_},
    {"aten::selu", composite, selu},
    {"aten::selu_", composite, selu_},
    {"aten::relu6", composite, relu6},
    {"aten::relu6_", composite, relu6_},
    {"aten::isfinite", composite, isfinite},
    {"aten::isclose", composite, isclose},
    // other names
    {"aten::absolute", composite, forward_to<"aten::abs">},
    {"aten::absolute_", composite, forward_to<"aten::abs_">},
    {"aten::arccos", composite, forward_to<"aten::acos">},
    {"aten::arccosh", composite, forward_to<"aten::acosh">},
    {"aten::arcsin", composite, forward_to<"aten::asin">},
    {"aten::arcsinh", composite, forward_to<"aten::asinh">},
    {"aten::arctan", composite, forward_to<"aten::atan">},
    {"aten::arctan2", composite, forward_to<"aten::atan2">},
    {"aten::arctanh", composite, forward_to<"aten::atanh">},
    {"aten::clip", composite, forward_to<"aten::clamp">},
    {"aten::clip.Tensor", composite, forward_to<"aten::clamp.Tensor">},
    {"aten::clip_", composite, forward_to<"aten::clamp_">},
    {"aten::clip_.Tensor", composite, forward_to<"aten::clamp_.Tensor">},
    {"aten::divide.Tensor", composite, forward_to<"aten::div.Tensor">},
    {"aten::divide.Scalar", composite, forward_to<"aten::div.Scalar">},
    {"aten::divide.Tensor_mode", composite, forward_to<"aten::div.Tensor_mode">},
    {"aten::divide.Scalar_mode", composite, forward_to<"aten::div.Scalar_mode">},
    {"aten::divide_.Tensor", composite, forward_to<"aten::div_.Tensor">},
    {"aten::divide_.Scalar", composite, forward_to<"aten::div_.Scalar">},
    {"aten::true_divide.Tensor", composite, forward_to<"aten::div.Tensor">},
    {"aten::true_divide.Scalar", composite, forward_to<"aten::div.Scalar">},
    {"aten::true_divide_.Tensor", composite, forward_to<"aten::div_.Tensor">},
    {"aten::true_divide_.Scalar", composite, forward_to<"aten::div_.Scalar">},
    {"aten::multiply.Tensor", composite, forward_to<"aten::mul.Tensor">},
    {"aten::multiply.Scalar", composite, forward_to<"aten::mul.Scalar">},
    {"aten::multiply_.Tensor", composite, forward_to<"aten::mul_.Tensor">},
    {"aten::multiply_.Scalar", composite, forward_to<"aten::mul_.Scalar">},
    {"aten::subtract.Tensor", composite, forward_to<"aten::sub.Tensor">},
    {"aten::subtract.Scalar", composite, forward_to<"aten::sub.Scalar">},
    {"aten::subtract_.Tensor", composite, forward_to<"aten::sub_.Tensor">},
    {"aten::subtract_.Scalar", composite, forward_to<"aten::sub_.Scalar">},
    {"aten::negative", composite, forward_to<"aten::neg">},
    {"aten::negative_", composite, forward_to<"aten::neg_">},
    {"aten::fix", composite, forward_to<"aten::trunc">},
    {"aten::fix_", composite, forward_to<"aten::trunc_">},
    {"aten::greater.Tensor", composite, forward_to<"aten::gt.Tensor">},
    {"aten::greater.Scalar", composite, forward_to<"aten::gt.Scalar">},
    {"aten::greater_equal.Tensor", composite, forward_to<"aten::ge.Tensor">},
    {"aten::greater_equal.Scalar", composite, forward_to<"aten::ge.Scalar">},
    {"aten::less.Tensor", composite, forward_to<"aten::lt.Tensor">},
    {"aten::less.Scalar", composite, forward_to<"aten::lt.Scalar">},
    {"aten::less_equal.Tensor", composite, forward_to<"aten::le.Tensor">},
    {"aten::less_equal.Scalar", composite, forward_to<"aten::le.Scalar">},
    {"aten::not_equal.Tensor", composite, forward_to<"aten::ne.Tensor">},
    {"aten::not_equal.Scalar", composite, forward_to<"aten::ne.Scalar">},
    {"aten::__and__.Tensor", composite, forward_to<"aten::bitwise_and.Tensor">},
    {"aten::__and__.Scalar", composite, forward_to<"aten::bitwise_and.Scalar">},
    {"aten::__or__.Tensor", composite, forward_to<"aten::bitwise_or.Tensor">},
    {"aten::__or__.Scalar", composite, forward_to<"aten::bitwise_or.Scalar">},
    {"aten::__xor__.Tensor", composite, forward_to<"aten::bitwise_xor.Tensor">},
    {"aten::__xor__.Scalar", composite, forward_to<"aten::bitwise_xor.Scalar">},
    {"aten::__iand__.Tensor", composite, forward_to<"aten::bitwise_and_.Tensor">},
    {"aten::__iand__.Scalar", composite, forward_to<"aten::bitwise_and_.Scalar">},
    {"aten::__ior__.Tensor", composite, forward_to<"aten::bitwise_or_.Tensor">},
    {"aten::__ior__.Scalar", composite, forward_to<"aten::bitwise_or_.Scalar">},
    {"aten::__ixor__.Tensor", composite, forward_to<"aten::bitwise_xor_.Tensor">},
    {"aten::__ixor__.Scalar", composite, forward_to<"aten::bitwise_xor_.Scalar">},
    {"aten::special_expit", composite, forward_to<"aten::sigmoid">},
    {"aten::special_erf", composite, forward_to<"aten::erf">},
    {"aten::special_erfc", composite, forward_to<"aten::erfc">},
    {"aten::special_erfinv", composite, forward_to<"aten::erfinv">},
    {"aten::special_exp2", composite, forward_to<"aten::exp2">},
    {"aten::special_expm1", composite, forward_to<"aten::expm1">},
    {"aten::special_log1p", composite, forward_to<"aten::log1p">},
    {"aten::special_gammaln", composite, forward_to<"aten::lgamma">},
    {"aten::special_digamma", composite, forward_to<"aten::digamma">},
    {"aten::special_psi", composite, forward_to<"aten::digamma">},
    {"aten::special_i0", composite, forward_to<"aten::i0">},
    {"aten::special_sinc", composite, forward_to<"aten::sinc">},
    {"aten::special_logit", composite, forward_to<"aten::logit">},
    {"aten::special_round", composite, forward_to<"aten::round.decimals">},
    {"aten::special_xlogy", composite, forward_to<"aten::xlogy.Tensor">},
};

void list(std::vector<Operator>& table, Names names, Rule rule) {
  for (const std::string_view name : names) table.push_back({name, kernel, rule});
}

std::vector<Operator> every_operator() {
  std::vector<Operator> table(std::begin(others), std::end(others));
  list(table, same_1, same<1>);
  list(table, floating_1, floating<1>);
  list(table, boolean_1, boolean<1>);
  list(table, same_2, same<2>);
  list(table, floating_2, floating<2>);
  list(table, boolean_2, boolean<2>);
  list(table, same_3, same<3>);
  list(table, written, in_place);
  return table;
}

}  // namespace

std::span<const Operator> elementwise_operators() {
  static const std::vector<Operator> table = every_operator();
  return table;
}

}  // namespace headroom::shadow
