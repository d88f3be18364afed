// Reductions, scans, sorting (aten/src/ATen/native/ReduceOps.cpp, SharedReduceOps.h, cuda/Sort.cpp,
// cuda/TensorTopK.cu).
#include <algorithm>
#include <numeric>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/kernels/reduce.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

/// Bytes of one sum: float32 for half types too.
ReduceElement accumulator(DType t) { return {std::max(4, bits_of(t) / 8)}; }
/// Bytes of one element itself: maximum and minimum compare in the input's type.
ReduceElement element(const Tensor& x) { return {std::max(1, bits_of(x->dtype) / 8)}; }
/// Welford's mean, deviation and counts; value with its index.
constexpr ReduceElement sixteen{16};

DType real_part_of(DType t) { return t == DType::c128 ? DType::f64 : t == DType::c64 ? DType::f32 : t; }

Dims all_dims(const Tensor& x) {
  Dims dims(x->dim());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

Dims dims_or_all(const Tensor& x, const Dims& dims) { return dims.empty() ? all_dims(x) : dims; }

// ---- sums ---------------------------------------------------------------------------------------------------------

/// sum and prod: integers and bool are summed as int64, in a copy made after the output.
Tensor summed(Shadow& m, const Tensor& x, const Dims& dims, bool keepdim, DType dtype) {
  if (dtype == DType::undefined) dtype = is_integer(x->dtype) || x->dtype == DType::b8 ? DType::i64 : x->dtype;
  Tensor out = empty_beside(m, x, reduced_sizes(*x, dims, keepdim), dtype);
  const bool in_kernel = x->dtype == dtype || (is_half(x->dtype) && dtype == DType::f32);
  const Tensor input = in_kernel ? x : empty_in_format(m, x, dtype, MemoryFormat::preserve);
  reduce_scratch(m, input, dims, accumulator(dtype));
  return out;
}

Outputs sum(Shadow& m, Args a) { return {summed(m, a.tensor(0), {}, false, a.dtype(1, DType::undefined))}; }

Outputs sum_dim(Shadow& m, Args a) {
  return {summed(m, a.tensor(0), dim_list(a, 1), a.boolean(2), a.dtype(3, DType::undefined))};
}

Outputs prod_dim(Shadow& m, Args a) {
  return {summed(m, a.tensor(0), dim_list(a, 1), a.boolean(2), a.dtype(3, DType::undefined))};
}

Outputs nansum(Shadow& m, Args a) { return sum_dim(m, a); }

Outputs mean(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  return {summed(m, x, {}, false, a.dtype(1, x->dtype))};
}

Outputs mean_dim(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  return {summed(m, x, dim_list(a, 1), a.boolean(2), a.dtype(3, x->dtype))};
}

/// (self, ord, dim, keepdim, dtype)
Outputs vector_norm(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const DType dtype = real_part_of(a.dtype(4, x->dtype));
  Tensor out = empty_beside(m, x, reduced_sizes(*x, dim_list(a, 2), a.boolean(3)), dtype);
  reduce_scratch(m, x, dim_list(a, 2), accumulator(dtype));
  return {out};
}

/// norm.Scalar, norm.ScalarOpt_dim and their forms with a dtype: (self, p, [dim, keepdim], [dtype]).
Outputs norm(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const bool has_dims = a.size() > 2 && !a[2].is_dtype();
  const Dims dims = has_dims ? dim_list(a, 2) : Dims{};
  return {reduce(m, x, dims, has_dims && a.boolean(3), x->dtype, accumulator(x->dtype))};
}

Outputs trace(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (x->dim() != 2) throw bad_input("trace of a tensor " + text_of(x->sizes));
  return {empty_beside(m, x, {}, is_integer(x->dtype) ? DType::i64 : x->dtype)};
}

Outputs count_nonzero(Shadow& m, Args a) {
  const Tensor nonzero = empty_in_format(m, a.tensor(0), DType::b8, MemoryFormat::preserve);
  return {summed(m, nonzero, a.size() > 1 ? dim_list(a, 1) : Dims{}, false, DType::undefined)};
}

// ---- extremes -----------------------------------------------------------------------------------------------------

/// amax, amin (self, dim, keepdim) and max, min of everything.
Outputs extreme(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const bool has_dims = a.size() > 1;
  return {reduce(m, x, has_dims ? dim_list(a, 1) : Dims{}, has_dims && a.boolean(2), x->dtype, element(x))};
}

/// max.dim, min.dim: values and indices, reduced as pairs.
Outputs extreme_dim(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims dims{a.integer(1)};
  const Dims sizes = reduced_sizes(*x, dims, a.boolean(2));
  Tensor values = empty_beside(m, x, sizes);
  Tensor indices = empty_beside(m, x, sizes, DType::i64);
  reduce_scratch(m, x, dims, sixteen);
  return {values, indices};
}

/// median.dim, kthvalue, mode: values and indices without the reduce kernel.
template <std::size_t dim>
Outputs selected(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims sizes = reduced_sizes(*x, {a.integer(dim)}, a.boolean(dim + 1));
  Tensor values = empty_beside(m, x, sizes);
  return {values, empty_beside(m, x, sizes, DType::i64)};
}

/// median of everything: sorted as one row, then one element.
Outputs median(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Tensor flat = reshaped(m, x, {-1});
  const Outputs sorted = m.all("aten::sort", flat, 0, false);
  return {empty_beside(m, x, {})};
}

/// The norm of a difference.
Outputs dist(Shadow& m, Args a) {
  const auto inputs = a.values().first(2);
  const Tensor difference = elementwise(m, result_type(inputs), inputs);
  return {reduce(m, difference, {}, false, difference->dtype, accumulator(difference->dtype))};
}

Outputs argmax(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims dims = dim_list(a, 1);
  return {reduce(m, x, dims, a.boolean(2), DType::i64, sixteen)};
}

/// (self, *, dim, keepdim) -> (min, max)
Outputs aminmax(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims sizes = reduced_sizes(*x, dim_list(a, 1), a.boolean(2));
  Tensor low = empty_beside(m, x, sizes);
  return {low, empty_beside(m, x, sizes)};
}

/// all, any: bool out of anything (uint8 keeps its type).
Outputs truth(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const bool has_dims = a.size() > 1;
  return {reduce(m, x, has_dims ? dim_list(a, 1) : Dims{}, has_dims && a.boolean(2),
                 x->dtype == DType::u8 ? DType::u8 : DType::b8, {1})};
}

Outputs allclose(Shadow& m, Args a) {
  const Tensor close = m.one("aten::isclose", a[0], a[1], a[2], a[3], a[4]);
  m.one("aten::all", close);
  return {true};
}

/// Comparison of everything: an answer on the host.
Outputs equal(Shadow& m, Args a) {
  const Tensor same = m.one("aten::eq.Tensor", a[0], a[1]);
  m.one("aten::all", same);
  return {true};
}

// ---- variance -----------------------------------------------------------------------------------------------------

/// var.correction, std.correction (self, dim, *, correction, keepdim).
Outputs variance(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  return {reduce(m, x, dim_list(a, 1), a.boolean(3), real_part_of(x->dtype), sixteen)};
}

Outputs variance_and_mean(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims sizes = reduced_sizes(*x, dim_list(a, 1), a.boolean(3));
  Tensor spread = empty_beside(m, x, sizes, real_part_of(x->dtype));
  Tensor average = empty_beside(m, x, sizes);
  reduce_scratch(m, x, dim_list(a, 1), sixteen);
  return {spread, average};
}

/// std(unbiased) and std.dim(dim, unbiased, keepdim) in terms of the correction.
template <OperatorName target>
Outputs unbiased(Shadow& m, Args a) {
  return m.all(target.view(), a[0], Value(), a.boolean(1) ? 1 : 0, false);
}
template <OperatorName target>
Outputs unbiased_dim(Shadow& m, Args a) {
  return m.all(target.view(), a[0], a[1], a.boolean(2) ? 1 : 0, a[3]);
}

// ---- scans and sorts ----------------------------------------------------------------------------------------------

/// cumsum, cumprod (self, dim, dtype); integers become int64. A copy where the input is not contiguous.
Outputs scan(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const DType kept = is_integer(x->dtype) || x->dtype == DType::b8 ? DType::i64 : x->dtype;
  const DType dtype = a.dtype(2, kept);
  Tensor out = empty_beside(m, x, x->sizes, dtype);
  const Tensor cast = dtype == x->dtype ? x : empty_in_format(m, x, dtype, MemoryFormat::preserve);
  const Tensor input = m.contiguous(cast);
  return {out};
}

Outputs logcumsumexp(Shadow& m, Args a) {
  Tensor out = empty_in_format(m, a.tensor(0), DType::undefined, MemoryFormat::preserve);
  const Tensor input = m.contiguous(a.tensor(0));
  return {out};
}

Outputs extreme_scan(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Tensor values = empty_beside(m, x, x->sizes);
  return {values, empty_beside(m, x, x->sizes, DType::i64)};
}

/// Both outputs in the input's order of dimensions, then the positions along the sorted one.
Tensor sorted(Shadow& m, const Tensor& x, std::int64_t dim, Tensor& indices) {
  Tensor values = empty_in_format(m, x, DType::undefined, MemoryFormat::preserve);
  indices = empty_in_format(m, x, DType::i64, MemoryFormat::preserve);
  if (x->dim() > 0 && !x->host) {
    const auto positions = m.scratch(bytes_of(DType::i64, x->sizes[wrap_dim(dim, x->dim())]));
  }
  return values;
}

Outputs sort(Shadow& m, Args a) {
  Tensor indices;
  const Tensor values = sorted(m, a.tensor(0), a.integer(1), indices);
  return {values, indices};
}

/// sort.stable (self, *, stable, dim, descending).
Outputs sort_stable(Shadow& m, Args a) {
  Tensor indices;
  const Tensor values = sorted(m, a.tensor(0), a.integer(2), indices);
  return {values, indices};
}

Outputs argsort(Shadow& m, Args a) { return {m.all("aten::sort", a[0], a[1], a[2])[1]}; }
Outputs argsort_stable(Shadow& m, Args a) { return {m.all("aten::sort.stable", a[0], a[1], a[2], a[3])[1]}; }
Outputs msort(Shadow& m, Args a) { return {m.all("aten::sort", a[0], 0, false)[0]}; }

/// Slices too long for one block each (should_use_sort and the multi-block kernel): counters and digit histograms a
/// row, and two scans over the blocks (probe 1024x1536, k = 5).
void multi_block_topk(Shadow& m, std::int64_t rows, int element_size) {
  const auto desired = m.scratch(Bytes(checked_mul(rows, element_size)));
  const auto remaining = m.scratch(Bytes(checked_mul(rows, 8)));
  const auto counts = m.scratch(Bytes(checked_mul(rows, 8)));
  const auto digits = m.scratch(Bytes(checked_mul(rows, 512)));
  const auto histogram = m.scratch(Bytes(checked_mul(rows, 1024)));
  const auto within = m.scratch(Bytes(checked_mul(rows, 4)));
  const auto equal_values = m.scratch(Bytes(checked_mul(rows, 4)));
  m.scratch(Bytes(1279));
  m.scratch(Bytes(1279));
}

/// should_use_multiblock of TensorTopK.cu, by rows and slice length.
bool uses_multi_block(std::int64_t rows, std::int64_t length) {
  return (rows <= 20 && length >= 20000) || (rows > 20 && rows <= 40 && length >= 10000) ||
         (rows > 40 && rows <= 80 && length >= 8000) || (rows > 80 && rows < 200 && length >= 5000) ||
         (rows >= 200 && rows < 800 && length >= 3000) || (rows >= 800 && rows <= 4000 && length >= 800) ||
         (rows > 4000 && length >= 400);
}

Outputs topk(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Dims sizes = x->sizes;
  const std::size_t d = wrap_dim(a.integer(2), x->dim());
  const std::int64_t length = sizes.empty() ? 1 : sizes[d];
  if (a.integer(1) < 0 || a.integer(1) > length)
    throw bad_input("topk of " + std::to_string(a.integer(1)) + " among " + std::to_string(length));
  if (!sizes.empty()) sizes[d] = a.integer(1);
  Tensor values = empty_beside(m, x, sizes);
  Tensor indices = empty_beside(m, x, sizes, DType::i64);
  if (!x->host && length > 0) {
    const std::int64_t rows = x->count() / length;
    const Tensor input = m.contiguous(x);
    if (uses_multi_block(rows, length)) multi_block_topk(m, rows, bits_of(x->dtype) / 8);
  }
  return {values, indices};
}

/// The maximum of each row, what is infinite in it, then the shifted exponentials and their sum.
Outputs logsumexp(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims dims = dims_or_all(x, dim_list(a, 1));
  const bool keepdim = a.boolean(2);
  const DType dtype = is_float(x->dtype) ? x->dtype : DType::f32;
  const Tensor maxima = reduce(m, x, dims, true, dtype, element(x));
  {
    const Tensor magnitudes = empty_beside(m, maxima, maxima->sizes);
    const Tensor infinite = empty_beside(m, maxima, maxima->sizes, DType::b8);
  }
  const Tensor shifted = empty_beside(m, x, x->sizes, dtype);
  Tensor out = empty_beside(m, x, reduced_sizes(*x, dims, keepdim), dtype);
  reduce_scratch(m, shifted, dims, accumulator(dtype));
  return {out};
}

Outputs renorm(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Tensor out = empty_in_format(m, x, DType::undefined, MemoryFormat::preserve);
  const std::size_t d = wrap_dim(a.integer(2), x->dim());
  Dims others = all_dims(x);
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(d));
  const Tensor norms = reduce(m, x, others, true, DType::f32);
  const Tensor factor = is_half(x->dtype) ? empty_beside(m, norms, norms->sizes, x->dtype) : Tensor();
  return {out};
}

Outputs histc(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Tensor out = empty_beside(m, x, {a.integer(1)});
  if (a.real(2) == a.real(3)) {
    // The range is that of the data: its minimum, then its maximum.
    for (int i = 0; i < 2; ++i) reduce(m, x, {}, false, x->dtype, element(x));
  }
  return {out};
}

// ---- weight norm --------------------------------------------------------------------------------------------------

/// (v, g, dim) -> (w, norms); norms of half types in float32.
Outputs weight_norm_interface(Shadow& m, Args a) {
  const Tensor &v = a.tensor(0), &g = a.tensor(1);
  Tensor w = empty_beside(m, v, v->sizes);
  return {w, m.empty_like(g, is_half(g->dtype) ? DType::f32 : g->dtype)};
}

/// (grad_w, saved_v, saved_g, saved_norms, dim) -> (grad_v, grad_g)
Outputs weight_norm_interface_backward(Shadow& m, Args a) {
  Tensor grad_v = empty_beside(m, a.tensor(1), a.tensor(1)->sizes);
  return {grad_v, m.empty_like(a.tensor(2))};
}

/// Fused over the first or the last dimension on the GPU; else written out.
Outputs weight_norm(Shadow& m, Args a) {
  const Tensor& v = a.tensor(0);
  const std::int64_t dim = a.integer(2);
  if (!v->host && (dim == 0 || dim + 1 == static_cast<std::int64_t>(v->dim())))
    return {
        m.all("aten::_weight_norm_interface", m.one("aten::contiguous", v), m.one("aten::contiguous", a[1]), dim)[0]};
  const Tensor scale = m.one("aten::div.Tensor", a[1], m.one("aten::norm_except_dim", v, 2, dim));
  return m.all("aten::mul.Tensor", v, scale);
}

// ---- composites ---------------------------------------------------------------------------------------------------

Outputs norm_except_dim(Shadow& m, Args a) {
  const Tensor& v = a.tensor(0);
  const std::int64_t dim = a.integer(2);
  if (dim == -1) return m.all("aten::norm.Scalar", v, a[1]);
  Dims out(v->dim(), 1);
  if (dim == 0) {
    out[0] = v->sizes[0];
    const Tensor flat = m.one("aten::view", m.one("aten::contiguous", v),
                              Dims{v->sizes[0], v->count() / std::max<std::int64_t>(v->sizes[0], 1)});
    return m.all("aten::view", m.one("aten::norm.ScalarOpt_dim", flat, a[1], Dims{1}, false), out);
  }
  if (dim + 1 == static_cast<std::int64_t>(v->dim())) {
    out.back() = v->sizes.back();
    const Tensor flat = m.one("aten::view", m.one("aten::contiguous", v),
                              Dims{v->count() / std::max<std::int64_t>(v->sizes.back(), 1), v->sizes.back()});
    return m.all("aten::view", m.one("aten::norm.ScalarOpt_dim", flat, a[1], Dims{0}, false), out);
  }
  const Tensor front = m.one("aten::transpose.int", v, 0, dim);
  const Tensor first = m.one("aten::norm_except_dim", front, a[1], 0);
  return m.all("aten::transpose.int", first, 0, dim);
}

/// Frobenius and its like: vector norms over the two matrix dimensions.
Outputs frobenius_norm(Shadow& m, Args a) { return m.all("aten::linalg_vector_norm", a[0], 2, dim_list(a, 1), a[2]); }

Outputs matrix_norm_str(Shadow& m, Args a) {
  return m.all("aten::linalg_vector_norm", a[0], 2, dim_list(a, 2), a[3], a[4]);
}

Outputs linalg_norm(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const bool flat = !a.given(1) && !a.given(2);
  const Tensor input = flat ? m.one("aten::flatten.using_ints", x, 0, -1) : x;
  return m.all("aten::linalg_vector_norm", input, a.given(1) ? a[1] : Value(2), a[2], a[3], a[4]);
}

template <OperatorName target>
Outputs of_other(Shadow& m, Args a) {
  return m.all(target.view(), a[0], a[1]);
}

Outputs nanmean(Shadow& m, Args a) {
  const Tensor valid = m.one("aten::logical_not", m.one("aten::isnan", m.one("aten::detach", a[0])));
  const Tensor count = m.one("aten::sum.dim_IntList", valid, dim_list(a, 1), a[2]);
  const Tensor total = m.one("aten::nansum", a[0], a[1], a[2], a[3]);
  return m.all("aten::div.Tensor", total, count);
}

Outputs diff(Shadow& m, Args a) {
  Tensor x = a.tensor(0);
  const std::int64_t dim = a.integer(2), order = a.integer(1);
  ValueList parts;
  if (a.given(3)) parts.push_back(a[3]);
  parts.push_back(x);
  if (a.given(4)) parts.push_back(a[4]);
  if (parts.size() > 1) x = m.one("aten::cat", parts, dim);
  parts.clear();
  const std::size_t d = wrap_dim(dim, x->dim());
  for (std::int64_t i = 0; i < order && x->sizes[d] > 0; ++i) {
    const std::int64_t length = x->sizes[d] - 1;
    const Tensor earlier = m.one("aten::narrow", x, dim, 0, length);
    const Tensor later = m.one("aten::narrow", x, dim, 1, length);
    x = m.one(x->dtype == DType::b8 ? "aten::logical_xor" : "aten::sub.Tensor", later, earlier);
  }
  return {x};
}

/// (y, dx, dim): the sum without half of both ends.
Outputs trapezoid(Shadow& m, Args a) {
  const Value& y = a[0];
  const Tensor last = m.one("aten::select.int", y, a[2], -1);
  const Tensor first = m.one("aten::select.int", y, a[2], 0);
  const Tensor ends = m.one("aten::add.Tensor", first, last);
  const Tensor half = m.one("aten::mul.Scalar", ends, 0.5);
  const Tensor total = m.one("aten::sum.dim_IntList", y, dim_list(a, 2), false);
  const Tensor inner = m.one("aten::sub.Tensor", total, half);
  return m.all("aten::mul.Scalar", inner, a[1]);
}

/// sum_to_size and the engine's sum_to.
Outputs sum_to_size(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims& sizes = a.integers(1);
  if (x->sizes == sizes) return {a[0]};
  if (x->dim() < sizes.size()) throw bad_input("sum_to_size " + text_of(sizes) + " of a tensor " + text_of(x->sizes));
  const std::size_t lead = x->dim() - sizes.size();
  Dims dims;
  for (std::size_t i = 0; i < x->dim(); ++i)
    if (i < lead || (sizes[i - lead] == 1 && x->sizes[i] != 1)) dims.push_back(static_cast<std::int64_t>(i));
  const Tensor total = dims.empty() ? x : m.one("aten::sum.dim_IntList", x, dims, true);
  return lead > 0 ? m.all("aten::view", total, sizes) : Outputs{total};
}

constexpr auto kernel = Operator::Kind::kernel;
constexpr auto composite = Operator::Kind::composite;

constexpr Operator operators[] = {
    {"aten::sum", kernel, sum},
    {"aten::sum.dim_IntList", kernel, sum_dim},
    {"aten::nansum", kernel, nansum},
    {"aten::mean", kernel, mean},
    {"aten::mean.dim", kernel, mean_dim},
    {"aten::prod", kernel, sum},
    {"aten::prod.dim_int", kernel, prod_dim},
    {"aten::linalg_vector_norm", kernel, vector_norm},
    {"aten::norm.Scalar", kernel, norm},
    {"aten::norm.ScalarOpt_dim", kernel, norm},
    {"aten::norm.ScalarOpt_dtype", kernel, norm},
    {"aten::norm.ScalarOpt_dim_dtype", kernel, norm},
    {"aten::trace", kernel, trace},
    {"aten::count_nonzero", kernel, count_nonzero},
    {"aten::count_nonzero.dim_IntList", kernel, count_nonzero},
    {"aten::amax", kernel, extreme},
    {"aten::amin", kernel, extreme},
    {"aten::max", kernel, extreme},
    {"aten::min", kernel, extreme},
    {"aten::max.dim", kernel, extreme_dim},
    {"aten::min.dim", kernel, extreme_dim},
    {"aten::median", kernel, median},
    {"aten::nanmedian", kernel, median},
    {"aten::dist", kernel, dist},
    {"aten::median.dim", kernel, selected<1>},
    {"aten::nanmedian.dim", kernel, selected<1>},
    {"aten::mode", kernel, selected<1>},
    {"aten::kthvalue", kernel, selected<2>},
    {"aten::argmax", kernel, argmax},
    {"aten::argmin", kernel, argmax},
    {"aten::aminmax", kernel, aminmax},
    {"aten::all", kernel, truth},
    {"aten::all.dim", kernel, truth},
    {"aten::all.dims", kernel, truth},
    {"aten::any", kernel, truth},
    {"aten::any.dim", kernel, truth},
    {"aten::any.dims", kernel, truth},
    {"aten::allclose", kernel, allclose},
    {"aten::equal", kernel, equal},
    {"aten::var.correction", kernel, variance},
    {"aten::std.correction", kernel, variance},
    {"aten::var_mean.correction", kernel, variance_and_mean},
    {"aten::std_mean.correction", kernel, variance_and_mean},
    {"aten::cumsum", kernel, scan},
    {"aten::cumprod", kernel, scan},
    {"aten::cumsum_", kernel, in_place},
    {"aten::cumprod_", kernel, in_place},
    {"aten::logcumsumexp", kernel, logcumsumexp},
    {"aten::cummax", kernel, extreme_scan},
    {"aten::cummin", kernel, extreme_scan},
    {"aten::sort", kernel, sort},
    {"aten::sort.stable", kernel, sort_stable},
    {"aten::topk", kernel, topk},
    {"aten::logsumexp", kernel, logsumexp},
    {"aten::renorm", kernel, renorm},
    {"aten::histc", kernel, histc},
    {"aten::var", composite, unbiased<"aten::var.correction">},
    {"aten::std", composite, unbiased<"aten::std.correction">},
    {"aten::var_mean", composite, unbiased<"aten::var_mean.correction">},
    {"aten::std_mean", composite, unbiased<"aten::std_mean.correction">},
    {"aten::var.dim", composite, unbiased_dim<"aten::var.correction">},
    {"aten::std.dim", composite, unbiased_dim<"aten::std.correction">},
    {"aten::var_mean.dim", composite, unbiased_dim<"aten::var_mean.correction">},
    {"aten::std_mean.dim", composite, unbiased_dim<"aten::std_mean.correction">},
    {"aten::max.other", composite, of_other<"aten::maximum">},
    {"aten::min.other", composite, of_other<"aten::minimum">},
    {"aten::argsort", composite, argsort},
    {"aten::argsort.stable", composite, argsort_stable},
    {"aten::msort", composite, msort},
    {"aten::special_logsumexp", composite, forward_to<"aten::logsumexp">},
    {"aten::_weight_norm_interface", kernel, weight_norm_interface},
    {"aten::_weight_norm_interface_backward", kernel, weight_norm_interface_backward},
    {"aten::_weight_norm", composite, weight_norm},
    {"aten::norm_except_dim", composite, norm_except_dim},
    {"aten::frobenius_norm.dim", composite, frobenius_norm},
    {"aten::linalg_matrix_norm.str_ord", composite, matrix_norm_str},
    {"aten::linalg_norm", composite, linalg_norm},
    {"aten::nanmean", composite, nanmean},
    {"aten::diff", composite, diff},
    {"aten::trapezoid.dx", composite, trapezoid},
    {"aten::trapz.dx", composite, trapezoid},
    {"aten::sum_to_size", composite, sum_to_size},
};

}  // namespace

std::span<const Operator> reduction_operators() { return operators; }

}  // namespace headroom::shadow
