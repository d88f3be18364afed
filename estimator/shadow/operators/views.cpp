// Views: another geometry on the same storage, and the operators that are views when they can be. Geometry as in
// aten/src/ATen/native/TensorShape.cpp.
#include <algorithm>
#include <numeric>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

std::int64_t signed_rank(const Tensor& t) { return static_cast<std::int64_t>(t->dim()); }

// ---- one view -----------------------------------------------------------------------------------------------------

/// A Program recovered from a file may say view where only reshape can: then a copy, as reshape makes it.
Outputs view(Shadow& m, Args a) { return {reshaped(m, a.tensor(0), a.integers(1))}; }

/// Reinterprets the elements; the last dimension shrinks or grows with their size.
Outputs view_dtype(Shadow& m, Args a) {
  const Tensor& t = a.tensor(0);
  const DType to = a.dtype(1, t->dtype);
  Dims sizes = t->sizes, strides = t->strides;
  const int from_bits = bits_of(t->dtype), to_bits = bits_of(to);
  std::int64_t offset = t->offset;
  if (from_bits != to_bits && !sizes.empty()) {
    const auto scaled = [&](std::int64_t n) { return n * from_bits / to_bits; };
    sizes.back() = scaled(sizes.back());
    for (std::size_t i = 0; i + 1 < strides.size(); ++i) strides[i] = scaled(strides[i]);
    offset = scaled(offset);
  }
  Tensor r = m.alias(t, sizes, strides, offset);
  r->dtype = to;
  return {r};
}

Outputs view_as_real(Shadow& m, Args a) {
  const Tensor& t = a.tensor(0);
  Dims sizes = t->sizes, strides = t->strides;
  for (auto& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  Tensor r = m.alias(t, sizes, strides, 2 * t->offset);
  r->dtype = t->dtype == DType::c128 ? DType::f64 : DType::f32;
  return {r};
}

Outputs view_as_complex(Shadow& m, Args a) {
  const Tensor& t = a.tensor(0);
  if (t->dim() == 0 || t->sizes.back() != 2)
    throw bad_input("view_as_complex needs a last dimension of 2, not " + text_of(t->sizes));
  Dims sizes = t->sizes, strides = t->strides;
  sizes.pop_back();
  strides.pop_back();
  for (auto& s : strides) s /= 2;
  Tensor r = m.alias(t, sizes, strides, t->offset / 2);
  r->dtype = t->dtype == DType::f64 ? DType::c128 : DType::c64;
  return {r};
}

Outputs alias(Shadow& m, Args a) { return {m.alias(a.tensor(0))}; }

Outputs permute(Shadow& m, Args a) { return {permuted(m, a.tensor(0), a.integers(1))}; }

Outputs transpose(Shadow& m, Args a) { return {transposed(m, a.tensor(0), a.integer(1), a.integer(2))}; }

Outputs t(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  return {x->dim() < 2 ? m.alias(x) : transposed(m, x, 0, 1)};
}

Outputs unsqueeze(Shadow& m, Args a) { return {unsqueezed(m, a.tensor(0), a.integer(1))}; }

/// Sizes and strides without the dimensions of size 1 among `dims` (all of them when `any`).
std::pair<Dims, Dims> squeezed(const Tensor& x, const Dims& dims, bool any) {
  std::vector<bool> chosen(x->dim(), any);
  for (const std::int64_t d : dims)
    if (x->dim() > 0) chosen[wrap_dim(d, x->dim())] = true;
  std::pair<Dims, Dims> r;
  for (std::size_t i = 0; i < x->dim(); ++i) {
    if (chosen[i] && x->sizes[i] == 1) continue;
    r.first.push_back(x->sizes[i]);
    r.second.push_back(x->strides[i]);
  }
  return r;
}

Outputs squeeze(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const auto [sizes, strides] = squeezed(x, dim_list(a, 1), a.size() < 2);
  return {m.alias(x, sizes, strides, x->offset)};
}

Outputs expand(Shadow& m, Args a) { return {expanded(m, a.tensor(0), a.integers(1))}; }

Outputs select(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::size_t d = wrap_dim(a.integer(1), x->dim());
  if (x->dim() == 0) throw bad_input("select of a tensor without dimensions");
  std::int64_t index = a.integer(2);
  if (index < 0) index += x->sizes[d];
  if (index < 0 || index >= x->sizes[d])
    throw bad_input("index " + std::to_string(a.integer(2)) + " in a dimension of size " + std::to_string(x->sizes[d]));
  Dims sizes = x->sizes, strides = x->strides;
  const std::int64_t offset = x->offset + index * strides[d];
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
  return {m.alias(x, sizes, strides, offset)};
}

Outputs slice(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::size_t d = wrap_dim(a.integer(1), x->dim());
  if (x->dim() == 0) throw bad_input("slice of a tensor without dimensions");
  const std::int64_t size = x->sizes[d];
  const auto bound = [size](std::int64_t i) { return std::clamp(i < 0 ? i + size : i, std::int64_t{0}, size); };
  const std::int64_t start = a.given(2) ? bound(a.integer(2)) : 0;
  const std::int64_t end = std::max(start, a.given(3) ? bound(a.integer(3)) : size);
  if (a.given(4) && a.integer(4) <= 0) throw bad_input("slice with step " + std::to_string(a.integer(4)));
  // A step beyond the dimension takes its first place, as any such step does.
  const std::int64_t step = a.given(4) ? std::min(a.integer(4), std::max<std::int64_t>(size, 1)) : 1;
  return {sliced(m, x, d, start, (end - start + step - 1) / step, step)};
}

Outputs diagonal(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::int64_t offset = a.integer(1);
  const std::size_t d1 = wrap_dim(a.integer(2), x->dim()), d2 = wrap_dim(a.integer(3), x->dim());
  if (d1 == d2 || x->dim() < 2) throw bad_input("diagonal of a tensor " + text_of(x->sizes));
  const std::int64_t length =
      offset >= 0 ? std::min(x->sizes[d1], x->sizes[d2] - offset) : std::min(x->sizes[d1] + offset, x->sizes[d2]);
  Dims sizes, strides;
  for (std::size_t i = 0; i < x->dim(); ++i) {
    if (i == d1 || i == d2) continue;
    sizes.push_back(x->sizes[i]);
    strides.push_back(x->strides[i]);
  }
  sizes.push_back(std::max<std::int64_t>(length, 0));
  strides.push_back(x->strides[d1] + x->strides[d2]);
  const std::int64_t start = length <= 0 ? 0 : offset >= 0 ? offset * x->strides[d2] : -offset * x->strides[d1];
  return {m.alias(x, sizes, strides, x->offset + start)};
}

Outputs as_strided(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  return {m.alias(x, a.integers(1), a.integers(2), a.given(3) ? a.integer(3) : x->offset)};
}

Outputs unfold(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::size_t d = wrap_dim(a.integer(1), x->dim());
  const std::int64_t size = a.integer(2), step = a.integer(3);
  if (x->dim() == 0) return {m.alias(x, {size}, {1}, x->offset)};
  Dims sizes = x->sizes, strides = x->strides;
  if (step <= 0 || size < 0 || size > sizes[d])
    throw bad_input("unfold with size " + std::to_string(size) + " and step " + std::to_string(step));
  sizes.push_back(size);
  strides.push_back(strides[d]);
  sizes[d] = (sizes[d] - size) / step + 1;
  strides[d] = checked_mul(strides[d], step);
  return {m.alias(x, sizes, strides, x->offset)};
}

// ---- views in place: the tensor's own geometry changes ------------------------------------------------------------

Outputs reshaped_in_place(const Tensor& x, Dims sizes, Dims strides) {
  x->sizes = std::move(sizes);
  x->strides = std::move(strides);
  return {x};
}

Outputs squeeze_(Shadow&, Args a) {
  const Tensor& x = a.tensor(0);
  auto [sizes, strides] = squeezed(x, dim_list(a, 1), a.size() < 2);
  return reshaped_in_place(x, std::move(sizes), std::move(strides));
}

Outputs unsqueeze_(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Tensor v = unsqueezed(m, x, a.integer(1));
  return reshaped_in_place(x, v->sizes, v->strides);
}

Outputs transpose_(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Tensor v = transposed(m, x, a.integer(1), a.integer(2));
  return reshaped_in_place(x, v->sizes, v->strides);
}

Outputs t_(Shadow&, Args a) {
  const Tensor& x = a.tensor(0);
  if (x->dim() == 2) {
    std::swap(x->sizes[0], x->sizes[1]);
    std::swap(x->strides[0], x->strides[1]);
  }
  return {x};
}

Outputs as_strided_(Shadow&, Args a) {
  const Tensor& x = a.tensor(0);
  if (a.given(3)) x->offset = a.integer(3);
  return reshaped_in_place(x, a.integers(1), a.integers(2));
}

// ---- lists of views -----------------------------------------------------------------------------------------------

/// No program keeps so many values: a dimension of a hostile file, not of a model.
void check_number(std::int64_t views) {
  constexpr std::int64_t most = 1'000'000;
  if (views > most) throw bad_input("a tensor taken apart into " + std::to_string(views) + " views");
}

/// Views of consecutive lengths along `dim`.
Outputs pieces(Shadow& m, const Tensor& x, std::int64_t dim, const Dims& lengths) {
  const std::size_t d = wrap_dim(dim, x->dim());
  if (x->dim() == 0) throw bad_input("split of a tensor without dimensions");
  std::vector<Tensor> list;
  std::int64_t start = 0;
  for (const std::int64_t n : lengths) {
    if (n < 0 || n > x->sizes[d] - start)
      throw bad_input("split of a dimension of size " + std::to_string(x->sizes[d]) + " into " + text_of(lengths));
    list.push_back(sliced(m, x, d, start, n));
    start += n;
  }
  return {std::move(list)};
}

Dims equal_lengths(std::int64_t size, std::int64_t piece) {
  if (piece <= 0 && size != 0) throw bad_input("split into pieces of size " + std::to_string(piece));
  if (size > 0) check_number(size / piece);
  Dims lengths;
  for (std::int64_t start = 0; start < size; start += piece) lengths.push_back(std::min(piece, size - start));
  if (lengths.empty()) lengths.push_back(0);
  return lengths;
}

Outputs split(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (x->dim() == 0) throw bad_input("split of a tensor without dimensions");
  return pieces(m, x, a.integer(2), equal_lengths(x->sizes[wrap_dim(a.integer(2), x->dim())], a.integer(1)));
}

Outputs split_with_sizes(Shadow& m, Args a) { return pieces(m, a.tensor(0), a.integer(2), a.integers(1)); }

Outputs unbind(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::size_t d = wrap_dim(a.integer(1), x->dim());
  if (x->dim() == 0) throw bad_input("unbind of a tensor without dimensions");
  check_number(x->sizes[d]);
  Dims sizes = x->sizes, strides = x->strides;
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(d));
  std::vector<Tensor> list;
  for (std::int64_t i = 0; i < x->sizes[d]; ++i)
    list.push_back(m.alias(x, sizes, strides, x->offset + i * x->strides[d]));
  return {std::move(list)};
}

// ---- composites ---------------------------------------------------------------------------------------------------

Tensor reshape_of(Shadow& m, const Tensor& x, const Dims& sizes) {
  const Dims out = infer_size(sizes, x->count());
  if (view_strides(*x, out)) return m.one("aten::view", x, out);
  return m.one("aten::_unsafe_view", m.one("aten::clone", x, "contiguous_format"), out);
}

Outputs reshape(Shadow& m, Args a) { return {reshape_of(m, a.tensor(0), a.integers(1))}; }
Outputs reshape_as(Shadow& m, Args a) { return {reshape_of(m, a.tensor(0), a.tensor(1)->sizes)}; }
Outputs view_as(Shadow& m, Args a) { return m.all("aten::view", a.tensor(0), a.tensor(1)->sizes); }
Outputs ravel(Shadow& m, Args a) { return {reshape_of(m, m.one("aten::contiguous", a.tensor(0)), {-1})}; }

Outputs flatten(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (x->dim() == 0) return {reshape_of(m, x, {1})};
  const std::size_t first = wrap_dim(a.integer(1), x->dim()), last = wrap_dim(a.integer(2), x->dim());
  if (first > last) throw bad_input("flatten from dimension " + std::to_string(first) + " to " + std::to_string(last));
  if (first == last) return {a[0]};
  Dims sizes(x->sizes.begin(), x->sizes.begin() + static_cast<std::ptrdiff_t>(first));
  std::int64_t merged = 1;
  for (std::size_t i = first; i <= last; ++i) merged = checked_mul(merged, x->sizes[i]);
  sizes.push_back(merged);
  sizes.insert(sizes.end(), x->sizes.begin() + static_cast<std::ptrdiff_t>(last) + 1, x->sizes.end());
  return {reshape_of(m, x, sizes)};
}

Outputs unflatten(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::size_t d = wrap_dim(a.integer(1), x->dim());
  if (x->dim() == 0) throw bad_input("unflatten of a tensor without dimensions");
  const Dims inner = infer_size(a.integers(2), x->sizes[d]);
  Dims sizes(x->sizes.begin(), x->sizes.begin() + static_cast<std::ptrdiff_t>(d));
  sizes.insert(sizes.end(), inner.begin(), inner.end());
  sizes.insert(sizes.end(), x->sizes.begin() + static_cast<std::ptrdiff_t>(d) + 1, x->sizes.end());
  return m.all("aten::view", x, sizes);
}

Outputs expand_as(Shadow& m, Args a) { return m.all("aten::expand", a.tensor(0), a.tensor(1)->sizes); }
Outputs broadcast_to(Shadow& m, Args a) { return m.all("aten::expand", a.tensor(0), a.integers(1)); }

Outputs broadcast_tensors(Shadow& m, Args a) {
  Dims sizes;
  for (const Value& v : a.list(0)) {
    const Dims& s = v.tensor()->sizes;
    if (s.size() > sizes.size()) sizes.insert(sizes.begin(), s.size() - sizes.size(), 1);
    for (std::size_t i = 0; i < s.size(); ++i)
      if (s[i] != 1) sizes[sizes.size() - s.size() + i] = s[i];
  }
  std::vector<Tensor> list;
  for (const Value& v : a.list(0)) list.push_back(m.one("aten::expand", v, sizes));
  return {std::move(list)};
}

Outputs numpy_T(Shadow& m, Args a) {
  Dims order(a.tensor(0)->dim());
  std::iota(order.rbegin(), order.rend(), 0);
  return m.all("aten::permute", a.tensor(0), order);
}

Outputs matrix_transpose(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  return x->dim() < 2 ? Outputs{a[0]} : m.all("aten::transpose.int", x, -2, -1);
}

Outputs movedim(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims from = dim_list(a, 1), to = dim_list(a, 2);
  if (from.size() != to.size()) throw bad_input("movedim from " + text_of(from) + " to " + text_of(to));
  Dims order(x->dim(), -1);
  std::vector<bool> moved(x->dim());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t source = wrap_dim(from[i], x->dim());
    moved[source] = true;
    order[wrap_dim(to[i], x->dim())] = static_cast<std::int64_t>(source);
  }
  std::int64_t next = 0;
  for (auto& d : order) {
    if (d >= 0) continue;
    while (moved[static_cast<std::size_t>(next)]) ++next;
    d = next++;
  }
  return m.all("aten::permute", x, order);
}

Outputs narrow(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  std::int64_t start = a.integer(2);
  const std::size_t d = wrap_dim(a.integer(1), x->dim());
  if (start < 0 && x->dim() > 0) start += x->sizes[d];
  return m.all("aten::slice.Tensor", x, a.integer(1), start, checked_add(start, a.integer(3)), 1);
}

Outputs chunk(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::int64_t chunks = a.integer(1);
  if (x->dim() == 0 || chunks <= 0) throw bad_input("chunk of a tensor " + text_of(x->sizes));
  check_number(chunks);
  const std::int64_t size = x->sizes[wrap_dim(a.integer(2), x->dim())];
  const std::int64_t piece = (size + chunks - 1) / chunks;
  if (piece == 0) return m.all("aten::split_with_sizes", x, Dims(static_cast<std::size_t>(chunks), 0), a.integer(2));
  return m.all("aten::split.Tensor", x, piece, a.integer(2));
}

Outputs unsafe_chunk(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::int64_t chunks = a.integer(1);
  if (x->dim() == 0 || chunks <= 0) throw bad_input("unsafe_chunk of a tensor " + text_of(x->sizes));
  const std::int64_t size = x->sizes[wrap_dim(a.integer(2), x->dim())];
  return m.all("aten::unsafe_split.Tensor", x, std::max<std::int64_t>((size + chunks - 1) / chunks, 1), a.integer(2));
}

/// Slices between the given places of `dim`.
Outputs slices_at(Shadow& m, const Tensor& x, const Dims& places, std::int64_t dim) {
  std::vector<Tensor> list;
  std::int64_t start = 0;
  for (const std::int64_t end : places) {
    list.push_back(m.one("aten::slice.Tensor", x, dim, start, end, 1));
    start = end;
  }
  list.push_back(m.one("aten::slice.Tensor", x, dim, start, x->sizes[wrap_dim(dim, x->dim())], 1));
  return {std::move(list)};
}

Outputs tensor_split_along(Shadow& m, const Tensor& x, const Value& where, std::int64_t dim) {
  if (where.is_integers()) return slices_at(m, x, where.integers(), dim);
  const std::int64_t sections = where.integer(), size = x->sizes[wrap_dim(dim, x->dim())];
  if (sections <= 0) throw bad_input("tensor_split into " + std::to_string(sections) + " sections");
  check_number(sections);
  Dims places;
  for (std::int64_t i = 0, at = 0; i + 1 < sections; ++i) {
    at += size / sections + (i < size % sections ? 1 : 0);
    places.push_back(at);
  }
  return slices_at(m, x, places, dim);
}

Outputs tensor_split(Shadow& m, Args a) { return tensor_split_along(m, a.tensor(0), a[1], a.integer(2)); }
Outputs vsplit(Shadow& m, Args a) { return tensor_split_along(m, a.tensor(0), a[1], 0); }
Outputs hsplit(Shadow& m, Args a) { return tensor_split_along(m, a.tensor(0), a[1], a.tensor(0)->dim() == 1 ? 0 : 1); }
Outputs dsplit(Shadow& m, Args a) { return tensor_split_along(m, a.tensor(0), a[1], 2); }

/// real and imag of a complex tensor: a place in its view as pairs.
template <int part>
Outputs part_of_complex(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (!is_complex(x->dtype)) return {a[0]};
  return m.all("aten::select.int", m.one("aten::view_as_real", x), signed_rank(x), part);
}

template <std::size_t rank>
Outputs at_least(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (x->dim() >= rank) return {a[0]};
  // atleast_3d puts one of the new dimensions behind, as PyTorch does for images without channels.
  const std::size_t behind = rank == 3 && x->dim() >= 1 ? 1 : 0;
  Dims sizes(rank, 1);
  std::ranges::copy(x->sizes, sizes.end() - static_cast<std::ptrdiff_t>(behind + x->dim()));
  return {reshape_of(m, x, sizes)};
}

Outputs meshgrid_of(Shadow& m, const ValueList& tensors, bool swap) {
  std::vector<Tensor> inputs;
  for (const Value& v : tensors) inputs.push_back(v.tensor());
  if (swap && inputs.size() >= 2) std::swap(inputs[0], inputs[1]);
  Dims shape;
  for (const Tensor& t : inputs) shape.push_back(t->count());
  std::vector<Tensor> grids;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Dims view(inputs.size(), 1);
    view[i] = -1;
    grids.push_back(m.one("aten::expand", m.one("aten::view", inputs[i], infer_size(view, shape[i])), shape));
  }
  if (swap && grids.size() >= 2) std::swap(grids[0], grids[1]);
  return {std::move(grids)};
}

Outputs meshgrid(Shadow& m, Args a) { return meshgrid_of(m, a.list(0), false); }
Outputs meshgrid_indexing(Shadow& m, Args a) { return meshgrid_of(m, a.list(0), a.text(1) == "xy"); }

constexpr auto kernel = Operator::Kind::kernel;
constexpr auto composite = Operator::Kind::composite;

constexpr Operator operators[] = {
    {"aten::view", kernel, view},
    {"aten::view.dtype", kernel, view_dtype},
    {"aten::_unsafe_view", kernel, view},
    {"aten::_reshape_alias", kernel, as_strided},
    {"aten::view_as_real", kernel, view_as_real},
    {"aten::view_as_complex", kernel, view_as_complex},
    {"aten::alias", kernel, alias},
    {"aten::detach", kernel, alias},
    {"aten::detach_", kernel, in_place},
    {"aten::_conj", kernel, alias},
    {"aten::_neg_view", kernel, alias},
    {"aten::lift", kernel, itself},
    {"aten::lift_fresh", kernel, itself},
    {"aten::permute", kernel, permute},
    {"aten::transpose.int", kernel, transpose},
    {"aten::t", kernel, t},
    {"aten::unsqueeze", kernel, unsqueeze},
    {"aten::squeeze", kernel, squeeze},
    {"aten::squeeze.dim", kernel, squeeze},
    {"aten::squeeze.dims", kernel, squeeze},
    {"aten::expand", kernel, expand},
    {"aten::select.int", kernel, select},
    {"aten::slice.Tensor", kernel, slice},
    {"aten::diagonal", kernel, diagonal},
    {"aten::as_strided", kernel, as_strided},
    {"aten::unfold", kernel, unfold},
    {"aten::squeeze_", kernel, squeeze_},
    {"aten::squeeze_.dim", kernel, squeeze_},
    {"aten::squeeze_.dims", kernel, squeeze_},
    {"aten::unsqueeze_", kernel, unsqueeze_},
    {"aten::transpose_", kernel, transpose_},
    {"aten::t_", kernel, t_},
    {"aten::as_strided_", kernel, as_strided_},
    {"aten::split.Tensor", kernel, split},
    {"aten::split_with_sizes", kernel, split_with_sizes},
    {"aten::unsafe_split.Tensor", kernel, split},
    {"aten::unsafe_split_with_sizes", kernel, split_with_sizes},
    {"aten::unbind.int", kernel, unbind},
    {"aten::reshape", composite, reshape},
    {"aten::reshape_as", composite, reshape_as},
    {"aten::view_as", composite, view_as},
    {"aten::ravel", composite, ravel},
    {"aten::flatten.using_ints", composite, flatten},
    {"aten::unflatten.int", composite, unflatten},
    {"aten::expand_as", composite, expand_as},
    {"aten::broadcast_to", composite, broadcast_to},
    {"aten::broadcast_tensors", composite, broadcast_tensors},
    {"aten::numpy_T", composite, numpy_T},
    {"aten::mT", composite, matrix_transpose},
    {"aten::mH", composite, matrix_transpose},
    {"aten::matrix_H", composite, matrix_transpose},
    {"aten::adjoint", composite, matrix_transpose},
    {"aten::swapaxes", composite, forward_to<"aten::transpose.int">},
    {"aten::swapdims", composite, forward_to<"aten::transpose.int">},
    {"aten::swapaxes_", composite, forward_to<"aten::transpose_">},
    {"aten::swapdims_", composite, forward_to<"aten::transpose_">},
    {"aten::movedim.int", composite, movedim},
    {"aten::movedim.intlist", composite, movedim},
    {"aten::moveaxis.int", composite, movedim},
    {"aten::moveaxis.intlist", composite, movedim},
    {"aten::narrow", composite, narrow},
    {"aten::split.sizes", composite, forward_to<"aten::split_with_sizes">},
    {"aten::chunk", composite, chunk},
    {"aten::unsafe_chunk", composite, unsafe_chunk},
    {"aten::tensor_split.sections", composite, tensor_split},
    {"aten::tensor_split.indices", composite, tensor_split},
    {"aten::vsplit.int", composite, vsplit},
    {"aten::vsplit.array", composite, vsplit},
    {"aten::hsplit.int", composite, hsplit},
    {"aten::hsplit.array", composite, hsplit},
    {"aten::dsplit.int", composite, dsplit},
    {"aten::dsplit.array", composite, dsplit},
    {"aten::linalg_diagonal", composite, forward_to<"aten::diagonal">},
    {"aten::real", composite, part_of_complex<0>},
    {"aten::imag", composite, part_of_complex<1>},
    {"aten::atleast_1d", composite, at_least<1>},
    {"aten::atleast_2d", composite, at_least<2>},
    {"aten::atleast_3d", composite, at_least<3>},
    {"aten::meshgrid", composite, meshgrid},
    {"aten::meshgrid.indexing", composite, meshgrid_indexing},
    {"aten::positive", composite, itself},
    {"aten::conj", composite, itself},
    {"aten::resolve_conj", composite, itself},
    {"aten::resolve_neg", composite, itself},
    {"aten::data", composite, forward_to<"aten::detach">},
};

}  // namespace

std::span<const Operator> view_operators() { return operators; }

}  // namespace headroom::shadow
