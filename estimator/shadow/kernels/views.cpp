#include "estimator/shadow/kernels/views.h"

#include <algorithm>

#include "estimator/base/error.h"

namespace headroom::shadow {

Dims infer_size(const Dims& sizes, std::int64_t count) {
  Dims result = sizes;
  const auto wildcard = std::ranges::find(result, -1);
  if (wildcard != result.end()) {
    *wildcard = 1;
    const std::int64_t others = element_count(result);
    if (others == 0 || count % others != 0)
      throw bad_input("a tensor of " + std::to_string(count) + " elements cannot be viewed as " + text_of(sizes));
    *wildcard = count / others;
  } else if (element_count(result) != count) {
    throw bad_input("a tensor of " + std::to_string(count) + " elements cannot be viewed as " + text_of(sizes));
  }
  return result;
}

std::optional<Dims> view_strides(const TensorImpl& t, const Dims& sizes) {
  if (t.sizes.empty()) return Dims(sizes.size(), 1);
  if (t.count() == 0) return t.sizes == sizes ? t.strides : contiguous_strides(sizes);
  // at::detail::computeStride: runs of dimensions that are contiguous in memory are matched from the last one on.
  Dims strides(sizes.size());
  std::size_t view = sizes.size();
  std::int64_t base = t.strides.back();
  std::int64_t run = 1, covered = 1;
  for (std::size_t d = t.dim(); d-- > 0;) {
    run = checked_mul(run, t.sizes[d]);
    if (d != 0 && (t.sizes[d - 1] == 1 || t.strides[d - 1] == run * base)) continue;
    while (view > 0 && (covered < run || sizes[view - 1] == 1)) {
      --view;
      strides[view] = covered * base;
      covered *= sizes[view];
    }
    if (covered != run) return std::nullopt;
    if (d > 0) {
      base = t.strides[d - 1];
      run = covered = 1;
    }
  }
  return view == 0 ? std::optional(strides) : std::nullopt;
}

std::size_t wrap_dim(std::int64_t dim, std::size_t rank) {
  const auto n = std::max<std::int64_t>(static_cast<std::int64_t>(rank), 1);
  if (dim < -n || dim >= n)
    throw bad_input("dimension " + std::to_string(dim) + " of a tensor with " + std::to_string(rank) + " dimensions");
  return static_cast<std::size_t>(dim < 0 ? dim + n : dim);
}

Dims dim_list(const Args& args, std::size_t i) {
  if (!args.given(i)) return {};
  return args[i].is_integers() ? args.integers(i) : Dims{args.integer(i)};
}

Tensor permuted(Shadow& m, const Tensor& t, const Dims& order) {
  if (order.size() != t->dim()) throw bad_input("permute " + text_of(order) + " of a tensor " + text_of(t->sizes));
  Dims sizes, strides;
  for (const std::int64_t d : order) {
    const std::size_t from = wrap_dim(d, t->dim());
    sizes.push_back(t->sizes[from]);
    strides.push_back(t->strides[from]);
  }
  return m.alias(t, sizes, strides, t->offset);
}

Tensor transposed(Shadow& m, const Tensor& t, std::int64_t a, std::int64_t b) {
  if (t->dim() == 0) return m.alias(t);
  Dims sizes = t->sizes, strides = t->strides;
  const std::size_t i = wrap_dim(a, t->dim()), j = wrap_dim(b, t->dim());
  std::swap(sizes[i], sizes[j]);
  std::swap(strides[i], strides[j]);
  return m.alias(t, sizes, strides, t->offset);
}

Tensor unsqueezed(Shadow& m, const Tensor& t, std::int64_t dim) {
  const std::size_t d = wrap_dim(dim, t->dim() + 1);
  Dims sizes = t->sizes, strides = t->strides;
  const std::int64_t stride = d < t->dim() ? sizes[d] * strides[d] : 1;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), 1);
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(d), stride);
  return m.alias(t, sizes, strides, t->offset);
}

Tensor sliced(Shadow& m, const Tensor& t, std::size_t dim, std::int64_t start, std::int64_t length, std::int64_t step) {
  Dims sizes = t->sizes, strides = t->strides;
  const std::int64_t offset = t->offset + start * strides[dim];
  sizes[dim] = length;
  strides[dim] *= step;
  return m.alias(t, sizes, strides, offset);
}

Tensor expanded(Shadow& m, const Tensor& t, const Dims& sizes) {
  if (sizes.size() < t->dim())
    throw bad_input("a tensor " + text_of(t->sizes) + " cannot be expanded to " + text_of(sizes));
  const std::size_t lead = sizes.size() - t->dim();
  Dims out = sizes, strides(sizes.size(), 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (i < lead) continue;
    const std::int64_t own = t->sizes[i - lead];
    if (out[i] == -1) out[i] = own;
    if (out[i] != own && own != 1)
      throw bad_input("a tensor " + text_of(t->sizes) + " cannot be expanded to " + text_of(sizes));
    strides[i] = out[i] == own ? t->strides[i - lead] : 0;
  }
  // at::inferExpandGeometry: a new leading dimension of size 1 has the stride that continues the next one.
  for (std::size_t i = lead; i-- > 0;)
    if (out[i] == 1) strides[i] = i + 1 < out.size() ? out[i + 1] * strides[i + 1] : 1;
  return m.alias(t, out, strides, t->offset);
}

Tensor reshaped(Shadow& m, const Tensor& t, const Dims& sizes) {
  const Dims out = infer_size(sizes, t->count());
  if (auto strides = view_strides(*t, out)) return m.alias(t, out, *strides, t->offset);
  const Tensor copy = m.contiguous(t);
  return m.alias(copy, out, contiguous_strides(out), copy->offset);
}

}  // namespace headroom::shadow
