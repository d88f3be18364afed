// Factories: tensors made from sizes, numbers or the shape of another tensor
// (aten/src/ATen/native/TensorFactories.cpp).
#include <cmath>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

/// The four TensorOptions arguments from `first` on: dtype, layout, device, pin_memory.
Tensor made(Shadow& m, const Dims& sizes, Args a, std::size_t first, DType fallback) {
  const DType dtype = a.dtype(first, fallback);
  return names_host(a, first + 2) ? m.host_tensor(sizes, dtype) : m.empty(sizes, dtype);
}

/// zeros, ones, empty, rand, randn: float32 unless told.
Outputs of_size(Shadow& m, Args a) { return {made(m, a.integers(0), a, 1, DType::f32)}; }

Outputs empty(Shadow& m, Args a) {
  const MemoryFormat format = memory_format(a, 5, MemoryFormat::contiguous);
  if (format != MemoryFormat::channels_last || names_host(a, 3)) return of_size(m, a);
  return {m.empty_strided(a.integers(0), channels_last_strides(a.integers(0)), a.dtype(1, DType::f32))};
}

Outputs empty_strided(Shadow& m, Args a) {
  const DType dtype = a.dtype(2, DType::f32);
  return {names_host(a, 4) ? m.host_tensor(a.integers(0), dtype)
                           : m.empty_strided(a.integers(0), a.integers(1), dtype)};
}

Outputs empty_permuted(Shadow& m, Args a) {
  const Dims& sizes = a.integers(0);
  Dims strides(sizes.size(), 1);
  std::int64_t next = 1;
  for (auto d = a.integers(1).rbegin(); d != a.integers(1).rend(); ++d) {
    const std::size_t at = wrap_dim(*d, sizes.size());
    strides[at] = next;
    next = checked_mul(next, sizes[at]);
  }
  return {m.empty_strided(sizes, strides, a.dtype(2, DType::f32))};
}

DType dtype_of_number(const Value& v) { return v.is_bool() ? DType::b8 : v.is_integer() ? DType::i64 : DType::f32; }

Outputs full(Shadow& m, Args a) { return {made(m, a.integers(0), a, 2, dtype_of_number(a[1]))}; }

/// A device scalar unless a device is named; at::scalar_tensor of the formulas.
Outputs scalar_tensor(Shadow& m, Args a) { return {made(m, {}, a, 1, DType::f32)}; }

/// x_like(self, [arguments], dtype, layout, device, pin_memory, memory_format).
template <std::size_t options>
Outputs like(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const DType dtype = a.dtype(options, x->dtype);
  if (names_host(a, options + 2)) return {m.host_tensor(x->sizes, dtype)};
  return {empty_in_format(m, x, dtype, memory_format(a, options + 4, MemoryFormat::preserve))};
}

/// self.new_x(size, [arguments], dtype, layout, device, pin_memory).
template <std::size_t options>
Outputs new_of_size(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const DType dtype = a.dtype(options, x->dtype);
  if (names_host(a, options + 2)) return {m.host_tensor(a.integers(1), dtype)};
  return {empty_beside(m, x, a.integers(1), dtype)};
}

Outputs new_empty_strided(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const DType dtype = a.dtype(3, x->dtype);
  return {x->host ? m.host_tensor(a.integers(1), dtype) : m.empty_strided(a.integers(1), a.integers(2), dtype)};
}

/// arange over [start, end) by step: int64 when all three are integers.
Tensor range(Shadow& m, const Value& start, const Value& end, const Value& step, Args a, std::size_t options) {
  const bool integers = !start.is_real() && !end.is_real() && !step.is_real();
  const double by = step.real();
  if (by == 0 || !std::isfinite(by)) throw bad_input("arange with step " + std::to_string(by));
  const double length = std::max(std::ceil((end.real() - start.real()) / by), 0.0);
  if (!(length < 9e15)) throw bad_input("arange of " + std::to_string(length) + " elements");
  return made(m, {static_cast<std::int64_t>(length)}, a, options, integers ? DType::i64 : DType::f32);
}

Outputs arange(Shadow& m, Args a) { return {range(m, 0, a[0], 1, a, 1)}; }
Outputs arange_start(Shadow& m, Args a) { return {range(m, a[0], a[1], 1, a, 2)}; }
Outputs arange_start_step(Shadow& m, Args a) { return {range(m, a[0], a[1], a[2], a, 3)}; }

Outputs linspace(Shadow& m, Args a) { return {made(m, {a.integer(2)}, a, 3, DType::f32)}; }
Outputs logspace(Shadow& m, Args a) { return {made(m, {a.integer(2)}, a, 4, DType::f32)}; }

Outputs eye(Shadow& m, Args a) { return {made(m, {a.integer(0), a.integer(0)}, a, 1, DType::f32)}; }
Outputs eye_m(Shadow& m, Args a) { return {made(m, {a.integer(0), a.integer(1)}, a, 2, DType::f32)}; }

/// tril_indices and triu_indices: [2, number of elements on that side of the diagonal].
template <bool lower>
Outputs triangle_indices(Shadow& m, Args a) {
  const std::int64_t rows = a.integer(0), columns = a.integer(1), offset = a.integer(2);
  constexpr std::int64_t most_rows = 100'000'000;
  if (rows > most_rows) throw bad_input("indices of a triangle of " + std::to_string(rows) + " rows");
  std::int64_t count = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t below = std::clamp<std::int64_t>(r + offset + (lower ? 1 : 0), 0, columns);
    count += lower ? below : columns - below;
  }
  return {made(m, {2, count}, a, 3, DType::i64)};
}

constexpr auto factory = Operator::Kind::factory, silent = Operator::Kind::silent;  // checks on the host

constexpr Operator operators[] = {
    {"aten::empty.memory_format", factory, empty},
    {"aten::empty_strided", factory, empty_strided},
    {"aten::empty_permuted", factory, empty_permuted},
    {"aten::zeros", factory, of_size},
    {"aten::ones", factory, of_size},
    {"aten::full", factory, full},
    {"aten::scalar_tensor", factory, scalar_tensor},
    {"aten::empty_like", factory, like<1>},
    {"aten::zeros_like", factory, like<1>},
    {"aten::ones_like", factory, like<1>},
    {"aten::full_like", factory, like<2>},
    {"aten::new_empty", factory, new_of_size<2>},
    {"aten::new_zeros", factory, new_of_size<2>},
    {"aten::new_ones", factory, new_of_size<2>},
    {"aten::new_full", factory, new_of_size<3>},
    {"aten::new_empty_strided", factory, new_empty_strided},
    {"aten::arange", factory, arange},
    {"aten::arange.start", factory, arange_start},
    {"aten::arange.start_step", factory, arange_start_step},
    {"aten::linspace", factory, linspace},
    {"aten::logspace", factory, logspace},
    {"aten::eye", factory, eye},
    {"aten::eye.m", factory, eye_m},
    {"aten::tril_indices", factory, triangle_indices<true>},
    {"aten::triu_indices", factory, triangle_indices<false>},
    {"aten::_assert_async", silent},
    {"aten::_assert_async.msg", silent},
    {"aten::_assert_scalar", silent},
    {"aten::_assert_tensor_metadata", silent},
    {"aten::sym_constrain_range", silent},
    {"aten::sym_constrain_range_for_size", silent},
};

}  // namespace

std::span<const Operator> factory_operators() { return operators; }

}  // namespace headroom::shadow
