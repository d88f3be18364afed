// Operators that move elements without computing: clone, to, cat, repeat, roll, triangles, and the backward leaves of
// views, which put a gradient into zeros of the base's size.
#include <algorithm>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

// ---- clone, contiguous, to ----------------------------------------------------------------------------------------

Outputs clone(Shadow& m, Args a) {
  return {empty_in_format(m, a.tensor(0), DType::undefined, memory_format(a, 1, MemoryFormat::preserve))};
}

Outputs contiguous(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const MemoryFormat format = memory_format(a, 1, MemoryFormat::contiguous);
  if (in_format(x, format)) return {a[0]};
  return m.all("aten::clone", x, format == MemoryFormat::channels_last ? "channels_last" : "contiguous_format");
}

Outputs to_copy(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const DType dtype = a.dtype(1, x->dtype);
  if (a.given(3) && names_host(a, 3)) return {m.host_tensor(x->sizes, dtype)};
  const MemoryFormat format = memory_format(a, 6, MemoryFormat::preserve);
  if (!x->host || !a.given(3)) return {empty_in_format(m, x, dtype, format)};
  return {format == MemoryFormat::channels_last ? m.empty_strided(x->sizes, channels_last_strides(x->sizes), dtype)
                                                : m.empty(x->sizes, dtype)};
}

/// Tensor::to: the tensor itself when dtype, device and format already are what is asked for.
Outputs converted(Shadow& m, const Value& self, const Value& dtype, const Value& device, bool copy,
                  const Value& format) {
  const Tensor& x = self.tensor();
  const std::array<Value, 1> wanted{format};
  const std::array<Value, 1> place{device};
  const bool to_host = names_host(Args(place), 0);
  const bool same_device = !device.is_text() || to_host == x->host;
  if (!copy && (dtype.none() || dtype.dtype() == x->dtype) && same_device &&
      in_format(x, memory_format(Args(wanted), 0, MemoryFormat::preserve)))
    return {self};
  return m.all("aten::_to_copy", self, dtype, Value(), device, Value(), false, format);
}

Outputs to_dtype(Shadow& m, Args a) { return converted(m, a[0], a[1], Value(), a.boolean(3), a[4]); }
Outputs to_device(Shadow& m, Args a) { return converted(m, a[0], a[2], a[1], a.boolean(4), a[5]); }
Outputs to_dtype_layout(Shadow& m, Args a) { return converted(m, a[0], a[1], a[3], a.boolean(6), a[7]); }

Value device_of(const Tensor& t) { return t->host ? Value("cpu") : Value("cuda"); }

Outputs to_other(Shadow& m, Args a) {
  const Tensor& other = a.tensor(1);
  return converted(m, a[0], other->dtype, device_of(other), a.boolean(3), a[4]);
}

Outputs type_as(Shadow& m, Args a) {
  return converted(m, a[0], a.tensor(1)->dtype, device_of(a.tensor(1)), false, Value());
}

template <DType dtype>
Outputs cast_to(Shadow& m, Args a) {
  return converted(m, a[0], dtype, Value(), false, Value());
}

// ---- writing into part of a tensor --------------------------------------------------------------------------------

/// CopyBackwards or FillBackward, inside CopySlices where what is written into is a view
/// (torch/csrc/autograd/functions/tensor.cpp): the node of the base then, which copies the gradient, and its part
/// again for the source.
class WrittenInto final : public Node {
 public:
  /// `source` empty: filled with a number.
  WrittenInto(Shadow& m, const Tensor& x, const Tensor& source) : part_(x->sizes) {
    const Tensor& whole = x->base ? x->base : x;
    sequence = m.next_sequence();
    module = m.recorder().module;
    site = m.recorder().site;
    inputs.push_back({whole->sizes, whole->dtype});
    next.push_back(gradient_edge(m, whole));
    if (x->base) strides_ = whole->strides;
    if (!source) return;
    next.push_back(gradient_edge(m, source));
    source_dtype_ = source->dtype;
  }

  std::string_view name() const override { return "aten::copy_"; }
  bool portray(Portrait&) const override { return true; }

  Gradients apply(Shadow& m, const Gradients& grads) override {
    Gradients out(next.size());
    if (!grads[0]) return out;
    m.recorder().op = m.entry("aten::copy_").text;
    Tensor grad = grads[0], whole;
    if (!strides_.empty()) {
      whole = m.empty_strided(grad->sizes, strides_, grad->dtype);
      grad = m.empty(part_, grad->dtype);
    }
    Tensor zeros;
    if (next[0].node) zeros = m.empty_like_contiguous(grad);
    if (next.size() > 1 && next[1].node)
      out[1] = source_dtype_ == grad->dtype ? grad : m.empty_like(grad, source_dtype_);
    if (next[0].node) out[0] = std::move(strides_.empty() ? zeros : whole);
    return out;
  }

 private:
  Dims part_, strides_;
  DType source_dtype_ = DType::undefined;
};

void write_history(Shadow& m, const Tensor& x, const Tensor& source) {
  if (!m.grad_enabled() || !is_float(x->dtype)) return;
  const Tensor whole = x->base ? x->base : x;
  if (!needs_grad(whole) && !needs_grad(source)) return;
  whole->grad_fn = Ref<Node>(new WrittenInto(m, x, source));
  whole->output_nr = 0;
  if (whole == x) return;
  // The view's own node is made anew from the base.
  const Tensor again = m.one("aten::as_strided", whole, Value(x->sizes), Value(x->strides), Value(x->offset));
  x->grad_fn = again->grad_fn;
  x->output_nr = again->output_nr;
}

Outputs copy_into(Shadow& m, Args a) {
  if (!m.below_autograd()) write_history(m, a.tensor(0), a.tensor(1));
  return {a[0]};
}

Outputs fill(Shadow& m, Args a) {
  if (!m.below_autograd()) write_history(m, a.tensor(0), {});
  return {a[0]};
}

// ---- concatenation ------------------------------------------------------------------------------------------------

DType common_dtype(const ValueList& tensors) { return result_type(tensors); }

/// Tensors of shape [0] are skipped, whatever the others' rank (legacy of torch.cat).
bool skipped(const Tensor& t) { return t->dim() == 1 && t->sizes[0] == 0; }

Outputs cat(Shadow& m, Args a) {
  const ValueList& tensors = a.list(0);
  if (tensors.empty()) throw bad_input("cat of no tensors");
  Tensor first;
  bool host = true, channels_last = true;
  for (const Value& v : tensors) {
    const Tensor& t = v.tensor();
    host = host && t->host;
    if (skipped(t)) continue;
    if (!first) first = t;
    channels_last = channels_last && suggests_channels_last(*t);
  }
  const DType dtype = common_dtype(tensors);
  if (!first) return {empty_beside(m, tensors[0].tensor(), {0}, dtype)};
  const std::size_t d = wrap_dim(a.integer(1), first->dim());
  if (first->dim() == 0) throw bad_input("cat of tensors without dimensions");
  Dims sizes = first->sizes;
  sizes[d] = 0;
  for (const Value& v : tensors) {
    const Tensor& t = v.tensor();
    if (skipped(t)) continue;
    if (t->dim() != sizes.size()) throw bad_input("cat of " + text_of(first->sizes) + " and " + text_of(t->sizes));
    sizes[d] = checked_add(sizes[d], t->sizes[d]);
  }
  if (host) return {m.host_tensor(sizes, dtype)};
  return {channels_last ? m.empty_strided(sizes, channels_last_strides(sizes), dtype) : m.empty(sizes, dtype)};
}

Outputs stack(Shadow& m, Args a) {
  const ValueList& tensors = a.list(0);
  if (tensors.empty()) throw bad_input("stack of no tensors");
  const Tensor& first = tensors[0].tensor();
  Dims sizes = first->sizes;
  const std::size_t d = wrap_dim(a.integer(1), first->dim() + 1);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), static_cast<std::int64_t>(tensors.size()));
  return {empty_beside(m, first, sizes, common_dtype(tensors))};
}

/// hstack, vstack, dstack: cat of tensors with at least `rank` dimensions.
template <OperatorName at_least, std::int64_t dim>
Outputs joined(Shadow& m, Args a) {
  ValueList tensors;
  std::int64_t along = dim;
  for (const Value& v : a.list(0)) tensors.emplace_back(m.one(at_least.view(), v));
  if (at_least.view() == "aten::atleast_1d" && !tensors.empty() && tensors[0].tensor()->dim() == 1) along = 0;
  return m.all("aten::cat", std::move(tensors), along);
}

Outputs column_stack(Shadow& m, Args a) {
  ValueList tensors;
  for (const Value& v : a.list(0)) {
    const Tensor& t = v.tensor();
    tensors.push_back(t->dim() <= 1 ? Value(m.one("aten::reshape", t, Dims{t->count(), 1})) : v);
  }
  return m.all("aten::cat", std::move(tensors), 1);
}

Outputs block_diag(Shadow& m, Args a) {
  const ValueList& tensors = a.list(0);
  Dims sizes{0, 0};
  for (const Value& v : tensors) {
    const Dims& s = v.tensor()->sizes;
    sizes[0] += s.size() == 2 ? s[0] : 1;
    sizes[1] += s.empty() ? 1 : s.back();
  }
  return {tensors.empty() ? m.empty(sizes, DType::f32)
                          : empty_beside(m, tensors[0].tensor(), sizes, common_dtype(tensors))};
}

Outputs cartesian_prod(Shadow& m, Args a) {
  if (a.list(0).size() == 1) return {a.list(0)[0]};
  Outputs grids = m.all("aten::meshgrid", a[0]);
  ValueList columns;
  for (Value& g : grids[0].list()) columns.emplace_back(m.one("aten::flatten.using_ints", g, 0, -1));
  return m.all("aten::stack", std::move(columns), 1);
}

// ---- repetition ---------------------------------------------------------------------------------------------------

Outputs repeat(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Dims sizes = a.integers(1);
  if (sizes.size() < x->dim()) throw bad_input("repeat " + text_of(sizes) + " of a tensor " + text_of(x->sizes));
  const std::size_t lead = sizes.size() - x->dim();
  for (std::size_t i = 0; i < x->dim(); ++i) sizes[lead + i] = checked_mul(sizes[lead + i], x->sizes[i]);
  return {empty_beside(m, x, sizes)};
}

Outputs tile(Shadow& m, Args a) {
  Dims repeats = a.integers(1);
  const std::size_t rank = a.tensor(0)->dim();
  if (repeats.size() < rank) repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  return m.all("aten::repeat", a.tensor(0), repeats);
}

Outputs repeat_interleave_int(Shadow& m, Args a) {
  Value x = a[0];
  if (!a.given(2)) x = m.one("aten::flatten.using_ints", x, 0, -1);
  if (x.tensor()->dim() == 0) x = m.one("aten::flatten.using_ints", x, 0, -1);
  const std::size_t rank = x.tensor()->dim();
  const std::size_t d = a.given(2) ? wrap_dim(a.integer(2), rank) : 0;
  const std::int64_t repeats = a.integer(1);
  Tensor t = m.one("aten::unsqueeze", x, static_cast<std::int64_t>(d) + 1);
  Dims sizes = t->sizes;
  sizes[d + 1] = repeats;
  t = m.one("aten::expand", t, sizes);
  t = m.one("aten::clone", t, "contiguous_format");
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d) + 1);
  sizes[d] = checked_mul(sizes[d], repeats);
  return m.all("aten::view", t, sizes);
}

// ---- reordering ---------------------------------------------------------------------------------------------------

/// Of the input's size, contiguous.
Outputs like_contiguous(Shadow& m, Args a) {
  return {empty_in_format(m, a.tensor(0), DType::undefined, MemoryFormat::contiguous)};
}
/// Of the input's size, in its order of dimensions.
Outputs like_preserved(Shadow& m, Args a) {
  return {empty_in_format(m, a.tensor(0), DType::undefined, MemoryFormat::preserve)};
}

/// One roll after the other: every one but the last is a temporary.
Outputs roll(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::size_t dims = std::max<std::size_t>(dim_list(a, 2).size(), 1);
  Tensor rolled = x;
  for (std::size_t i = 0; i < dims; ++i) rolled = empty_beside(m, x, x->sizes);
  return {rolled};
}

Outputs rot90(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::int64_t turns = ((a.integer(1) % 4) + 4) % 4;
  const Dims dims = a.integers(2);
  Tensor r = empty_in_format(m, x, DType::undefined, MemoryFormat::preserve);
  return {turns % 2 == 1 && dims.size() == 2 ? transposed(m, r, dims[0], dims[1]) : r};
}

template <std::int64_t dim>
Outputs flipped(Shadow& m, Args a) {
  return m.all("aten::flip", a.tensor(0), Dims{dim});
}

Outputs diag_embed(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (x->dim() == 0) throw bad_input("diag_embed of a tensor without dimensions");
  const std::size_t rank = x->dim() + 1;
  const std::int64_t offset = a.integer(1);
  const std::size_t d1 = wrap_dim(a.integer(2), rank), d2 = wrap_dim(a.integer(3), rank);
  const std::int64_t side = x->sizes.back() + std::abs(offset);
  Dims sizes(x->sizes.begin(), x->sizes.end() - 1);
  for (const std::size_t d : {std::min(d1, d2), std::max(d1, d2)})
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), side);
  return {empty_beside(m, x, sizes)};
}

Outputs diag(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (x->dim() == 1) return m.all("aten::diag_embed", x, a[1]);
  const Tensor d = m.one("aten::diagonal", x, a[1]);
  return m.all("aten::clone", d, "contiguous_format");
}

// ---- sliding blocks -----------------------------------------------------------------------------------------------

/// An output resized from a tensor like the input: it stays in the input-sized block when it fits there.
Tensor resized(Shadow& m, Tensor made, const Dims& sizes) {
  if (bytes_of(made->dtype, element_count(sizes)) > made->storage->bytes) return empty_beside(m, made, sizes);
  made->sizes = sizes;
  made->strides = contiguous_strides(sizes);
  return made;
}

/// F.unfold (self, kernel_size, dilation, padding, stride): [N, C, H, W] to [N, C·kh·kw, L].
Outputs im2col(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims &kernel = a.integers(1), &dilation = a.integers(2), &padding = a.integers(3), &stride = a.integers(4);
  if (x->dim() < 3 || kernel.size() != 2 || dilation.size() != 2 || padding.size() != 2 || stride.size() != 2)
    throw bad_input("unfold of a tensor " + text_of(x->sizes));
  std::int64_t blocks = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t reach = checked_add(checked_add(x->sizes[x->dim() - 2 + i], checked_mul(2, padding[i])),
                                           -checked_mul(dilation[i], kernel[i] - 1)) -
                               1;
    if (reach < 0 || stride[i] <= 0)
      throw bad_input("unfold of a tensor " + text_of(x->sizes) + " with kernel " + text_of(kernel));
    blocks = checked_mul(blocks, reach / stride[i] + 1);
  }
  Dims sizes(x->sizes.begin(), x->sizes.end() - 2);
  sizes.back() = checked_mul(sizes.back(), checked_mul(kernel[0], kernel[1]));
  sizes.push_back(blocks);
  Tensor out = empty_in_format(m, x, DType::undefined, MemoryFormat::contiguous);
  const Tensor input = m.contiguous(x);
  return {resized(m, std::move(out), sizes)};
}

/// F.fold (self, output_size, kernel_size, ...): [N, C·kh·kw, L] to [N, C, H, W].
Outputs col2im(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Dims &output = a.integers(1), &kernel = a.integers(2);
  if (x->dim() < 2 || kernel.size() != 2 || output.size() != 2 || kernel[0] * kernel[1] <= 0)
    throw bad_input("fold of a tensor " + text_of(x->sizes));
  Dims sizes(x->sizes.begin(), x->sizes.end() - 1);
  sizes.back() /= kernel[0] * kernel[1];
  sizes.insert(sizes.end(), output.begin(), output.end());
  Tensor out = empty_in_format(m, x, DType::undefined, MemoryFormat::contiguous);
  const Tensor input = m.contiguous(x);
  return {resized(m, std::move(out), sizes)};
}

// ---- gradients of views -------------------------------------------------------------------------------------------

/// zeros of the base's size (argument 1), into which the gradient is copied.
Outputs base_zeros(Shadow& m, Args a) { return {empty_beside(m, a.tensor(0), a.integers(1))}; }

/// Overlapping windows (size > step) are added up through an index of the dimension's positions.
Outputs unfold_backward(Shadow& m, Args a) {
  Tensor out = empty_beside(m, a.tensor(0), a.integers(1));
  if (a.integer(3) > a.integer(4) && out->dim() > 0) {
    const auto positions = m.scratch(bytes_of(DType::i64, out->sizes[wrap_dim(a.integer(2), out->dim())]));
  }
  return {out};
}

constexpr auto kernel = Operator::Kind::kernel;
constexpr auto composite = Operator::Kind::composite;

constexpr Operator operators[] = {
    {"aten::clone", kernel, clone},
    {"aten::contiguous", composite, contiguous},
    {"aten::_to_copy", kernel, to_copy},
    {"aten::to.dtype", composite, to_dtype},
    {"aten::to.device", composite, to_device},
    {"aten::to.dtype_layout", composite, to_dtype_layout},
    {"aten::to.other", composite, to_other},
    {"aten::type_as", composite, type_as},
    {"aten::_cast_Float", composite, cast_to<DType::f32>},
    {"aten::_cast_Half", composite, cast_to<DType::f16>},
    {"aten::_cast_Double", composite, cast_to<DType::f64>},
    {"aten::_cast_Long", composite, cast_to<DType::i64>},
    {"aten::_cast_Int", composite, cast_to<DType::i32>},
    {"aten::copy_", composite, copy_into},
    {"aten::fill_.Scalar", composite, fill},
    {"aten::copy", kernel, like_preserved},
    {"aten::cat", kernel, cat},
    {"aten::concat", composite, forward_to<"aten::cat">},
    {"aten::concatenate", composite, forward_to<"aten::cat">},
    {"aten::stack", kernel, stack},
    {"aten::hstack", composite, joined<"aten::atleast_1d", 1>},
    {"aten::vstack", composite, joined<"aten::atleast_2d", 0>},
    {"aten::row_stack", composite, joined<"aten::atleast_2d", 0>},
    {"aten::dstack", composite, joined<"aten::atleast_3d", 2>},
    {"aten::column_stack", composite, column_stack},
    {"aten::block_diag", kernel, block_diag},
    {"aten::cartesian_prod", composite, cartesian_prod},
    {"aten::repeat", kernel, repeat},
    {"aten::tile", composite, tile},
    {"aten::repeat_interleave.self_int", composite, repeat_interleave_int},
    {"aten::roll", kernel, roll},
    {"aten::flip", kernel, like_preserved},
    {"aten::fliplr", composite, flipped<1>},
    {"aten::flipud", composite, flipped<0>},
    {"aten::rot90", kernel, rot90},
    {"aten::tril", kernel, like_contiguous},
    {"aten::triu", kernel, like_contiguous},
    {"aten::tril_", kernel, in_place},
    {"aten::triu_", kernel, in_place},
    {"aten::diag_embed", kernel, diag_embed},
    {"aten::diag", composite, diag},
    {"aten::im2col", kernel, im2col},
    {"aten::col2im", kernel, col2im},
    {"aten::slice_scatter", kernel, like_preserved},
    {"aten::select_scatter", kernel, like_preserved},
    {"aten::diagonal_scatter", kernel, like_preserved},
    {"aten::as_strided_scatter", kernel, like_preserved},
    {"aten::slice_backward", kernel, base_zeros},
    {"aten::select_backward", kernel, base_zeros},
    {"aten::diagonal_backward", kernel, base_zeros},
    {"aten::unfold_backward", kernel, unfold_backward},
};

}  // namespace

std::span<const Operator> copy_operators() { return operators; }

}  // namespace headroom::shadow
