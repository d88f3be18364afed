// Indexing by tensors: embedding, gather, scatter, index (aten/src/ATen/native/TensorAdvancedIndexing.cpp,
// cuda/Indexing.cu, cuda/Embedding.cu, cuda/EmbeddingBackwardKernel.cu). Sorting's scratch is CUB's; its sizes are
// measured.
#include <algorithm>
#include <bit>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/ceil_div.h"
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

/// What a list of scratch blocks is freed like: the last made first.
class ScratchStack {
 public:
  explicit ScratchStack(Shadow& m) : m_(m) {}
  ScratchStack(const ScratchStack&) = delete;
  ScratchStack& operator=(const ScratchStack&) = delete;
  ~ScratchStack() {
    while (!blocks_.empty()) blocks_.pop_back();
  }
  void add(std::int64_t bytes) { blocks_.push_back(m_.scratch(Bytes(bytes))); }
  /// Frees the `i`-th last block.
  void drop(std::size_t i = 0) { blocks_.erase(blocks_.end() - 1 - static_cast<std::ptrdiff_t>(i)); }

 private:
  Shadow& m_;
  std::vector<Ref<Storage>> blocks_;
};

std::int64_t eight(std::int64_t n) { return checked_mul(8, n); }

/// cub::DeviceRadixSort of n pairs of int64 by the lowest `bits`: nothing to speak of in one tile; else second buffers
/// for keys and values where one pass of eight bits is not enough, a histogram a pass, look-back state of a tile of
/// 4,608 pairs (probes: 44 counts from 3,073 to 2,097,152 by all bits, 4,096 by 11, ten from 3,073 to 1,048,576 by 7).
std::int64_t sort_scratch(std::int64_t n, int bits = 64) {
  constexpr std::int64_t single_tile = 2304, tile = 4608;
  if (n <= single_tile) return 1;
  const std::int64_t passes = (bits + 7) / 8;
  const std::int64_t buffers = passes > 1 ? 2 * Bytes(eight(n)).rounded_up(256).count() : 0;
  return buffers + passes * 256 * 8 + 1024 * ceil_div(n, tile) + 256 + 255;
}

/// Look-back state of `bytes` a tile, beside what cub takes in any case.
std::int64_t look_back(std::int64_t n, std::int64_t tile, std::int64_t bytes) {
  return Bytes(768 + bytes * ceil_div(n, tile)).rounded_up(256).count() + 255;
}
/// cub::DeviceScan over n int64 values (probes: 3,840 and 1,572,864 elements, and sums over 100 to 50,257 segments).
std::int64_t scan_scratch(std::int64_t n) { return look_back(n, 896, 16); }
/// cub::DeviceSelect::UniqueByKey of n int64 keys (probes: 44 counts from 3,073 to 2,097,152).
std::int64_t unique_scratch(std::int64_t n) { return look_back(n, 2240, 8); }

// ---- one index tensor ---------------------------------------------------------------------------------------------

Outputs index_select(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Dims sizes = x->sizes;
  if (!sizes.empty()) sizes[wrap_dim(a.integer(1), x->dim())] = a.tensor(2)->count();
  return {empty_beside(m, x, sizes)};
}

Outputs gather(Shadow& m, Args a) { return {empty_beside(m, a.tensor(0), a.tensor(2)->sizes)}; }

/// scatter, index_add, index_copy: self copied into a contiguous output, which is then written.
Outputs copied(Shadow& m, Args a) {
  return {empty_in_format(m, a.tensor(0), DType::undefined, MemoryFormat::contiguous)};
}
/// index_fill, put: self cloned.
Outputs cloned(Shadow& m, Args a) {
  return {empty_in_format(m, a.tensor(0), DType::undefined, MemoryFormat::preserve)};
}

/// include_self with the mean: sums, counts and their mask beside the output.
Outputs scatter_reduce(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Tensor out = empty_beside(m, x, x->sizes);
  if (a.text(4) == "mean") {
    const Tensor ones = empty_beside(m, x, x->sizes);
    const Tensor counts = empty_beside(m, x, x->sizes);
    const Tensor empty = empty_beside(m, x, x->sizes, DType::b8);
  }
  return {out};
}

Outputs take(Shadow& m, Args a) { return {empty_beside(m, a.tensor(0), a.tensor(1)->sizes)}; }

Outputs take_along_dim(Shadow& m, Args a) {
  Tensor x = a.tensor(0), indices = a.tensor(1);
  if (!a.given(2)) {
    const Tensor flat = m.one("aten::view", indices, Dims{-1});
    return m.all("aten::gather", m.one("aten::reshape", x, Dims{-1}), 0, flat);
  }
  const std::size_t d = wrap_dim(a.integer(2), x->dim());
  const auto broadcast_but_dim = [&](const Tensor& t, const Tensor& other) {
    Dims sizes = t->sizes;
    for (std::size_t i = 0; i < sizes.size() && i < other->dim(); ++i)
      if (i != d && sizes[i] == 1) sizes[i] = other->sizes[i];
    return sizes;
  };
  const Dims x_sizes = broadcast_but_dim(x, indices), index_sizes = broadcast_but_dim(indices, x);
  const Tensor spread_indices = m.one("aten::expand", indices, index_sizes);
  const Tensor wrapped = m.one("aten::remainder.Scalar", spread_indices, x_sizes[d]);
  return m.all("aten::gather", m.one("aten::expand", x, x_sizes), static_cast<std::int64_t>(d), wrapped);
}

// ---- lists of index tensors ---------------------------------------------------------------------------------------

/// Says once an operator that its result's size is data, of which the largest was taken.
void note_data(Shadow& m, std::string_view op, Bytes bound) {
  constexpr std::string_view code = "size-by-data";
  for (Diagnostic& d : m.diagnostics)
    if (d.code == code && d.message.starts_with(op)) {
      d.bound = std::max(d.bound, bound);
      return;
    }
  m.diagnostics.push_back(
      {.code = std::string(code),
       .severity = Severity::warning,
       .node = {},
       .message = std::string(op) + ": how many elements it selects is data; all of them are counted",
       .bound = bound});
}

/// nonzero of a mask: how many are set is known on the GPU only, so every element counts. A counter and a byte for its
/// sum, the coordinates, and the selection's scratch.
Tensor nonzero_of(Shadow& m, const Tensor& mask, std::string_view op) {
  const std::int64_t hits = mask->count();
  Tensor coordinates;
  {
    const auto counter = m.scratch(Bytes(4));
    m.scratch(Bytes(1));
    coordinates = empty_beside(m, mask, {hits, static_cast<std::int64_t>(mask->dim())}, DType::i64);
    m.scratch(Bytes(1023));
  }
  note_data(m, op,
            bytes_of(DType::i64, checked_mul(hits, static_cast<std::int64_t>(std::max<std::size_t>(mask->dim(), 1)))));
  return coordinates;
}

/// Indices of a call: one tensor a dimension of self, undefined where the dimension is kept; masks become coordinates.
struct Indices {
  std::vector<Tensor> tensors;
  std::vector<Tensor> coordinates;  ///< what masks were turned into; columns of these are in `tensors`
};

Indices expanded_indices(Shadow& m, const Tensor& self, const ValueList& list, std::string_view op) {
  Indices r;
  for (const Value& v : list) {
    const Tensor& t = v.tensor();
    if (t && (t->dtype == DType::b8 || t->dtype == DType::u8)) {
      const Tensor hits = nonzero_of(m, t, op);
      for (std::size_t d = 0; d < t->dim(); ++d)
        r.tensors.push_back(m.alias(hits, {hits->sizes[0]}, {hits->strides[0]}, static_cast<std::int64_t>(d)));
      r.coordinates.push_back(hits);
    } else {
      r.tensors.push_back(t);
    }
  }
  if (r.tensors.size() > self->dim()) throw bad_input("too many indices for a tensor " + text_of(self->sizes));
  r.tensors.resize(self->dim());
  return r;
}

std::vector<Value> defined(const std::vector<Tensor>& tensors) {
  std::vector<Value> r;
  for (const Tensor& t : tensors)
    if (t) r.emplace_back(t);
  return r;
}

/// Whether the indexed dimensions stand side by side; else the result has them in front.
bool side_by_side(const std::vector<Tensor>& tensors) {
  const auto is_defined = [](const Tensor& t) { return static_cast<bool>(t); };
  const auto first = std::ranges::find_if(tensors, is_defined);
  const auto last = std::find_if(tensors.rbegin(), tensors.rend(), is_defined).base();
  return first >= last || std::all_of(first, last, is_defined);
}

/// Size of self[indices], and self as the iterator sees it: stride 0 in the indexed dimensions.
struct Indexed {
  Dims sizes, strides;
  std::int64_t count = 0;  ///< of the broadcast index
  std::size_t lead = 0;    ///< dimensions in front of the index' own
  std::size_t index_rank = 0;
};

Indexed indexed_sizes(const Tensor& self, const std::vector<Tensor>& tensors) {
  const std::vector<Value> indices = defined(tensors);
  const Dims index_sizes = broadcast_sizes(indices);
  Indexed r;
  r.count = element_count(index_sizes);
  r.index_rank = index_sizes.size();
  Dims before_sizes, before_strides, after_sizes, after_strides;
  const bool adjacent = side_by_side(tensors);
  bool seen = !adjacent;
  for (std::size_t d = 0; d < tensors.size(); ++d) {
    if (tensors[d]) {
      seen = true;
      continue;
    }
    (seen ? after_sizes : before_sizes).push_back(self->sizes[d]);
    (seen ? after_strides : before_strides).push_back(self->strides[d]);
  }
  r.lead = before_sizes.size();
  r.sizes = before_sizes;
  r.sizes.insert(r.sizes.end(), index_sizes.begin(), index_sizes.end());
  r.sizes.insert(r.sizes.end(), after_sizes.begin(), after_sizes.end());
  r.strides = before_strides;
  r.strides.insert(r.strides.end(), index_sizes.size(), 0);
  r.strides.insert(r.strides.end(), after_strides.begin(), after_strides.end());
  return r;
}

Outputs index(Shadow& m, Args a) {
  const Tensor& self = a.tensor(0);
  const Indices indices = expanded_indices(m, self, a.list(1), "aten::index.Tensor");
  if (defined(indices.tensors).empty()) return {empty_in_format(m, self, DType::undefined, MemoryFormat::preserve)};
  const Indexed r = indexed_sizes(self, indices.tensors);
  if (self->host) return {m.host_tensor(r.sizes, self->dtype)};
  std::vector<Value> inputs{m.alias(self, r.sizes, r.strides, self->offset)};
  for (const Value& v : defined(indices.tensors)) {
    const Tensor& t = v.tensor();
    Dims sizes(r.sizes.size(), 1), strides(r.sizes.size(), 0);
    for (std::size_t i = 0; i < t->dim(); ++i) {
      const std::size_t at = r.lead + r.index_rank - t->dim() + i;
      sizes[at] = t->sizes[i];
      strides[at] = t->strides[i];
    }
    inputs.emplace_back(m.alias(t, sizes, strides, t->offset));
  }
  return {m.empty_strided(r.sizes, iterator_strides(r.sizes, inputs), self->dtype)};
}

/// Bits of the largest linear index: as many slices as lie before the indexed dimensions' end; without the dimensions
/// behind them, or without all others when the indexed ones are apart (makeLinearIndex).
int index_bits(const Tensor& self, const std::vector<Tensor>& tensors) {
  std::size_t first = tensors.size(), last = 0, number = 0;
  std::int64_t inside = 1, behind = 1;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]) continue;
    first = std::min(first, i);
    last = i;
    ++number;
    inside *= self->sizes[i];
  }
  for (std::size_t i = last + 1; i < self->dim(); ++i) behind *= self->sizes[i];
  const std::int64_t slice = last - first + 1 == number ? behind : self->count() / std::max<std::int64_t>(inside, 1);
  const std::int64_t largest = (self->count() - 1) / std::max<std::int64_t>(slice, 1);
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(largest, 0))));
}

/// index_put with accumulation: a linear index per element, sorted with the positions. `checked`: the range is tested
/// on the host first, by the minimum and maximum of every index. Values that are broadcast, or lie in another layout,
/// are copied.
void accumulate(Shadow& m, const Tensor& self, const std::vector<Tensor>& tensors, std::vector<Tensor>& coordinates,
                const Tensor& values, bool checked) {
  const Indexed r = indexed_sizes(self, tensors);
  const std::int64_t n = r.count;
  std::size_t number = defined(tensors).size();
  if (n == 0 || number == 0) return;
  for (std::size_t i = 0; checked && i < 2 * number; ++i) {
    const auto extreme = m.scratch(Bytes(8));
    m.scratch(Bytes(1));
  }
  ScratchStack stack(m);
  stack.add(eight(n));  // wrapped
  stack.add(eight(n));  // times its stride
  stack.drop(1);
  for (std::size_t i = 1; i < number; ++i) {
    stack.add(eight(n));
    stack.add(eight(n));
    stack.drop(1);
    stack.drop(0);
  }
  coordinates.clear();
  if (const std::int64_t count = element_count(r.sizes); values->count() < count || !is_contiguous(*values))
    stack.add(bytes_of(values->dtype, count).count());
  stack.add(eight(n));  // sorted
  stack.add(eight(n));  // positions
  stack.add(eight(n));  // their order
  stack.add(sort_scratch(n, index_bits(self, tensors)));
}

Outputs index_put_into(Shadow& m, const Value& self, Args a, bool unsafe) {
  Indices indices = expanded_indices(m, self.tensor(), a.list(1), "aten::index_put");
  if (a.size() > 3 && a.boolean(3) && !self.tensor()->host) {
    const std::vector<Tensor> tensors = std::move(indices.tensors);
    accumulate(m, self.tensor(), tensors, indices.coordinates, a.tensor(2), !unsafe);
  }
  return {self};
}

Outputs index_put(Shadow& m, Args a) { return index_put_into(m, cloned(m, a)[0], a, false); }
Outputs index_put_(Shadow& m, Args a) { return index_put_into(m, a[0], a, false); }
Outputs index_put_impl(Shadow& m, Args a) { return index_put_into(m, a[0], a, a.size() > 4 && a.boolean(4)); }

Outputs nonzero_static(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  return {empty_beside(m, x, {a.integer(1), static_cast<std::int64_t>(x->dim())}, DType::i64)};
}

/// repeats -> indices. Their number is data unless output_size says it; then every repeat counts once.
Outputs repeat_interleave(Shadow& m, Args a) {
  const Tensor& repeats = a.tensor(0);
  if (!a.given(1)) note_data(m, "aten::repeat_interleave.Tensor", bytes_of(DType::i64, repeats->count()));
  const Tensor ends = empty_beside(m, repeats, repeats->sizes, DType::i64);
  return {empty_beside(m, repeats, {a.given(1) ? a.integer(1) : repeats->count()}, DType::i64)};
}

/// (self, repeats, dim, output_size): rows picked by the repeated indices.
Outputs repeat_interleave_self(Shadow& m, Args a) {
  const Tensor x = a.given(2) ? a.tensor(0) : m.one("aten::flatten.using_ints", a[0], 0, -1);
  const Tensor indices = m.one("aten::repeat_interleave.Tensor", a[1], a[3]);
  return m.all("aten::index_select", x, a.given(2) ? a[2] : Value(0), indices);
}

Outputs nonzero(Shadow& m, Args a) { return {nonzero_of(m, a.tensor(0), "aten::nonzero")}; }

// ---- masks --------------------------------------------------------------------------------------------------------

/// As x[mask]: every element may be selected.
Outputs masked_select(Shadow& m, Args a) {
  const Dims sizes = broadcast_sizes(a.values().first(2));
  const Tensor mask = expanded(m, a.tensor(1), sizes);
  const Tensor coordinates = nonzero_of(m, mask, "aten::masked_select");
  return {empty_beside(m, a.tensor(0), {element_count(sizes)})};
}

void scatter_positions(Shadow& m, const Tensor& mask) {
  if (mask->host) return;
  const auto positions = m.scratch(Bytes(eight(mask->count())));
  m.scratch(Bytes(scan_scratch(mask->count())));
}

Outputs masked_scatter(Shadow& m, Args a) {
  Tensor out = empty_beside(m, a.tensor(0), broadcast_sizes(a.values().first(2)), a.tensor(0)->dtype);
  scatter_positions(m, expanded(m, a.tensor(1), out->sizes));
  return {out};
}

Outputs masked_scatter_(Shadow& m, Args a) {
  scatter_positions(m, expanded(m, a.tensor(1), a.tensor(0)->sizes));
  return {a[0]};
}

/// (grad_output, mask, sizes): the selected gradients, zeros for the rest of the source, both joined.
Outputs masked_scatter_backward(Shadow& m, Args a) {
  const Tensor selected = m.one("aten::masked_select", a[0], a[1]);
  const std::int64_t rest = element_count(a.integers(2)) - selected->count();
  if (rest <= 0) return m.all("aten::view", selected, a[2]);
  const Tensor zeros = empty_beside(m, selected, {rest});
  const Tensor joined = empty_beside(m, selected, {element_count(a.integers(2))});
  return m.all("aten::view", joined, a[2]);
}

// ---- embeddings ---------------------------------------------------------------------------------------------------

/// Rows of the weight; indices that are not contiguous are copied first.
Outputs embedding(Shadow& m, Args a) {
  const Tensor &weight = a.tensor(0), &indices = a.tensor(1);
  if (weight->dim() != 2) throw bad_input("embedding of a weight " + text_of(weight->sizes));
  const Tensor flat = indices->dim() == 1 ? indices : reshaped(m, indices, {-1});
  Dims sizes = indices->sizes;
  sizes.push_back(weight->sizes[1]);
  return {empty_beside(m, weight, sizes)};
}

/// embedding_backward_cuda_kernel: segments of equal indices, split into pieces of ten, summed in two passes.
Tensor summed_by_segments(Shadow& m, const Tensor& grad, std::int64_t n, std::int64_t rows) {
  // So few rows are summed straight into the result, in float32 for half types (probes: 2 rows do, 512 do not).
  constexpr std::int64_t few_segments = 32;
  const std::int64_t width = grad->sizes.empty() ? 1 : grad->sizes.back();
  Tensor dense = m.empty({rows, width}, grad->dtype);
  ScratchStack stack(m);
  const std::int64_t segments = std::min(n, rows), partial = n / 10 + segments;
  stack.add(eight(n));  // where segments start
  stack.add(8);         // their number
  stack.add(eight(n));
  stack.add(unique_scratch(n));
  stack.drop();
  stack.drop();
  stack.add(eight(segments));
  stack.add(eight(segments));
  stack.add(scan_scratch(segments));
  stack.drop();
  stack.add(8);
  stack.add(eight(partial));
  if (segments < few_segments) {
    stack.add(eight(partial));
    if (is_half(grad->dtype)) stack.add(checked_mul(4, dense->count()));
  } else {
    stack.add(checked_mul(checked_mul(4, width), partial));
  }
  return dense;
}

/// Sorted indices and their positions, then the sums: the path of many indices, and embedding_bag's for any.
Tensor embedding_gradient(Shadow& m, const Tensor& grad, const Tensor& indices, std::int64_t rows) {
  const std::int64_t n = indices->count();
  const auto sorted = m.scratch(Bytes(eight(n)));
  const auto positions = m.scratch(Bytes(eight(n)));
  {
    const auto range = m.scratch(Bytes(eight(n)));
    m.scratch(Bytes(sort_scratch(n)));
  }
  return summed_by_segments(m, grad, n, rows);
}

/// (grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
Outputs embedding_dense_backward(Shadow& m, Args a) {
  constexpr std::int64_t few = 3072;
  const Tensor grad = m.contiguous(a.tensor(0));
  const Tensor indices = m.contiguous(a.tensor(1));
  const std::int64_t rows = a.integer(2);
  if (indices->count() <= few && !a.boolean(4))
    return {empty_beside(m, grad, {rows, grad->sizes.empty() ? 1 : grad->sizes.back()})};
  return {embedding_gradient(m, grad, indices, rows)};
}

/// (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)
/// -> (output, offset2bag, bag_size, max_indices). Modes: 0 sum, 1 mean, 2 max.
Outputs embedding_bag_forward(Shadow& m, Args a) {
  const Tensor &weight = a.tensor(0), &indices = a.tensor(1), &offsets = a.tensor(2);
  const std::int64_t bags = std::max<std::int64_t>(offsets->count() - (a.boolean(7) ? 1 : 0), 0);
  const std::int64_t width = weight->sizes.back();
  const bool maximum = a.integer(4) == 2;
  Tensor bag_size = m.empty({offsets->count()}, DType::i64);
  Tensor offset2bag = m.empty({indices->count()}, DType::i64);
  Tensor out = m.empty({bags, width}, weight->dtype);
  return {out, offset2bag, bag_size, maximum ? m.empty({bags, width}, DType::i64) : m.empty({0}, DType::i64)};
}

/// (grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale, mode, sparse,
/// per_sample_weights, padding_idx)
Outputs embedding_bag_backward(Shadow& m, Args a) {
  const Tensor grad = m.contiguous(a.tensor(0));
  const std::int64_t rows = a.integer(6);
  if (a.integer(8) == 2) return {m.empty({rows, grad->sizes.back()}, grad->dtype)};
  return {embedding_gradient(m, grad, a.tensor(1), rows)};
}

/// (grad, weight, indices, offsets, offset2bag, mode, padding_idx)
Outputs per_sample_weights_backward(Shadow& m, Args a) { return {m.empty({a.tensor(2)->count()}, a.tensor(0)->dtype)}; }

Outputs embedding_bag(Shadow& m, Args a) {
  const Value padding = a.size() > 8 && a.given(8) ? a[8] : Value(-1);
  return m.all("aten::_embedding_bag", a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], padding);
}

// ---- others -------------------------------------------------------------------------------------------------------

/// searchsorted(sequence, values), bucketize(values, boundaries): int64 positions, int32 on request.
template <std::size_t values, std::size_t out_int32>
Outputs positions(Shadow& m, Args a) {
  const DType dtype = a.boolean(out_int32) ? DType::i32 : DType::i64;
  if (!a[values].is_tensor()) return {m.empty({}, dtype)};
  return {empty_beside(m, a.tensor(values), a.tensor(values)->sizes, dtype)};
}

/// Classes must be known; where they are not (-1), PyTorch asks the GPU for the maximum, and so must the caller of
/// this.
Outputs one_hot(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (a.integer(1) < 0)
    throw bad_input("one_hot needs num_classes, which is data here", {}, "pass num_classes to F.one_hot");
  Dims sizes = x->sizes;
  sizes.push_back(a.integer(1));
  const Tensor out = m.one("aten::zeros", sizes, DType::i64, Value(), x->host ? Value("cpu") : Value());
  m.all("aten::scatter_.value", out, -1, m.one("aten::unsqueeze", x, -1), 1);
  return {out};
}

Outputs isin(Shadow& m, Args a) {
  const Value& elements = a[0];
  if (!elements.is_tensor()) return {m.empty({}, DType::b8)};
  return {empty_in_format(m, elements.tensor(), DType::b8, MemoryFormat::contiguous)};
}

constexpr auto kernel = Operator::Kind::kernel;
constexpr auto composite = Operator::Kind::composite;

constexpr Operator operators[] = {
    {"aten::index_select", kernel, index_select},
    {"aten::gather", kernel, gather},
    {"aten::scatter.src", kernel, copied},
    {"aten::scatter.value", kernel, copied},
    {"aten::scatter.reduce", kernel, copied},
    {"aten::scatter.value_reduce", kernel, copied},
    {"aten::scatter_.src", kernel, in_place},
    {"aten::scatter_.value", kernel, in_place},
    {"aten::scatter_.reduce", kernel, in_place},
    {"aten::scatter_.value_reduce", kernel, in_place},
    {"aten::scatter_add", kernel, copied},
    {"aten::scatter_add_", kernel, in_place},
    {"aten::scatter_reduce.two", kernel, scatter_reduce},
    {"aten::scatter_reduce_.two", kernel, in_place},
    {"aten::index_add", kernel, copied},
    {"aten::index_add_", kernel, in_place},
    {"aten::index_copy", kernel, copied},
    {"aten::index_copy_", kernel, in_place},
    {"aten::index_fill.int_Scalar", kernel, cloned},
    {"aten::index_fill.int_Tensor", kernel, cloned},
    {"aten::index_fill_.int_Scalar", kernel, in_place},
    {"aten::index_fill_.int_Tensor", kernel, in_place},
    {"aten::put", kernel, cloned},
    {"aten::put_", kernel, in_place},
    {"aten::take", kernel, take},
    {"aten::index.Tensor", kernel, index},
    {"aten::_unsafe_index.Tensor", kernel, index},
    {"aten::index_put", kernel, index_put},
    {"aten::_unsafe_index_put", kernel, index_put},
    {"aten::index_put_", kernel, index_put_},
    {"aten::_index_put_impl_", kernel, index_put_impl},
    {"aten::nonzero", kernel, nonzero},
    {"aten::nonzero_static", kernel, nonzero_static},
    {"aten::repeat_interleave.Tensor", kernel, repeat_interleave},
    {"aten::repeat_interleave.self_Tensor", composite, repeat_interleave_self},
    {"aten::masked_select", kernel, masked_select},
    {"aten::masked_scatter", kernel, masked_scatter},
    {"aten::masked_scatter_", kernel, masked_scatter_},
    {"aten::masked_scatter_backward", kernel, masked_scatter_backward},
    {"aten::embedding", kernel, embedding},
    {"aten::embedding_dense_backward", kernel, embedding_dense_backward},
    {"aten::_embedding_bag", kernel, embedding_bag_forward},
    {"aten::_embedding_bag_forward_only", kernel, embedding_bag_forward},
    {"aten::_embedding_bag_backward", kernel, embedding_bag_backward},
    {"aten::_embedding_bag_per_sample_weights_backward", kernel, per_sample_weights_backward},
    {"aten::searchsorted.Tensor", kernel, positions<1, 2>},
    {"aten::searchsorted.Scalar", kernel, positions<1, 2>},
    {"aten::bucketize.Tensor", kernel, positions<0, 2>},
    {"aten::bucketize.Scalar", kernel, positions<0, 2>},
    {"aten::isin.Tensor_Tensor", kernel, isin},
    {"aten::isin.Tensor_Scalar", kernel, isin},
    {"aten::take_along_dim", composite, take_along_dim},
    {"aten::embedding_bag", composite, embedding_bag},
    {"aten::embedding_bag.padding_idx", composite, embedding_bag},
    {"aten::one_hot", composite, one_hot},
};

}  // namespace

std::span<const Operator> indexing_operators() { return operators; }

}  // namespace headroom::shadow
