// Matrix products. Which operands cuBLAS can read as they lie, and what is copied: aten/src/ATen/native/cuda/Blas.cpp
// and cuda/cuBlasCommonArgs.h; how matmul folds and broadcasts: aten/src/ATen/native/LinearAlgebra.cpp.
#include <algorithm>
#include <numeric>
#include <optional>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/kernels/reduce.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

// ---- operands of a GEMM -------------------------------------------------------------------------------------------

/// Row- or column-major with a leading stride that covers a row: what a GEMM reads without a copy.
bool gemm_reads(std::int64_t rows, std::int64_t columns, std::int64_t row_stride, std::int64_t column_stride) {
  return (column_stride == 1 && row_stride >= std::max<std::int64_t>(1, columns)) ||
         (row_stride == 1 && column_stride >= std::max<std::int64_t>(1, rows));
}

/// prepare_matrix_for_cublas: the matrix, or a contiguous copy of it.
Tensor gemm_operand(Shadow& m, const Tensor& t) {
  if (is_dense(*t) || gemm_reads(t->sizes[0], t->sizes[1], t->strides[0], t->strides[1])) return t;
  return m.empty(t->sizes, t->dtype);
}

/// prepare_batch_matrix_for_cublas.
Tensor batched_operand(Shadow& m, const Tensor& t) {
  if (gemm_reads(t->sizes[1], t->sizes[2], t->strides[1], t->strides[2])) return t;
  if (is_contiguous(*t) && t->strides[1] != 0 && t->strides[2] != 0) return t;
  return m.empty(t->sizes, t->dtype);
}

void check_product(const Tensor& a, const Tensor& b, std::size_t rank) {
  if (a->dim() != rank || b->dim() != rank || a->sizes[rank - 1] != b->sizes[rank - 2] ||
      (rank == 3 && a->sizes[0] != b->sizes[0]))
    throw bad_input("matrix product of " + text_of(a->sizes) + " and " + text_of(b->sizes));
}

/// The GEMM itself into a row-major result: cuBLAS sees the product transposed, so the right operand is prepared first.
void gemm(Shadow& m, const Tensor& a, const Tensor& b) {
  const Tensor second = gemm_operand(m, b);
  const Tensor first = gemm_operand(m, a);
  m.use_cublas();
}

Tensor mm_of(Shadow& m, const Tensor& a, const Tensor& b, DType dtype) {
  check_product(a, b, 2);
  const Dims sizes{a->sizes[0], b->sizes[1]};
  if (a->host && b->host) return m.host_tensor(sizes, dtype);
  Tensor out = m.empty(sizes, dtype);
  if (out->count() > 0 && a->count() > 0) gemm(m, a, b);
  return out;
}

Outputs mm(Shadow& m, Args a) { return {mm_of(m, a.tensor(0), a.tensor(1), a.tensor(0)->dtype)}; }
Outputs mm_dtype(Shadow& m, Args a) { return {mm_of(m, a.tensor(0), a.tensor(1), a.dtype(2, DType::f32))}; }

/// Whether the bias is added in cuBLASLt's epilogue (isInputCompliesAddmmCudaLt).
bool fuses_bias(const Tensor& bias, const Tensor& b, double beta) {
  const bool one_dimensional =
      std::ranges::count_if(bias->sizes, [](std::int64_t d) { return d != 1; }) <= 1 && bias->dim() >= 1;
  return beta == 1 && one_dimensional && is_contiguous(*bias) && bias->sizes.back() == b->sizes[1] && b->sizes[0] > 1 &&
         b->sizes[1] > 1;
}

Outputs addmm_of(Shadow& m, const Tensor& bias, const Tensor& left, const Tensor& right, DType dtype, double beta) {
  check_product(left, right, 2);
  Tensor out = empty_beside(m, left, {left->sizes[0], right->sizes[1]}, dtype);
  if (out->host || out->count() == 0 || left->count() == 0) return {out};
  const Tensor second = gemm_operand(m, right);
  const Tensor first = gemm_operand(m, left);
  m.use_cublas();  // its handle is asked for first
  if (fuses_bias(bias, right, beta)) m.use_cublaslt();
  return {out};
}

Outputs addmm(Shadow& m, Args a) {
  return addmm_of(m, a.tensor(0), a.tensor(1), a.tensor(2), a.tensor(1)->dtype, a.real(3));
}
Outputs addmm_dtype(Shadow& m, Args a) {
  return addmm_of(m, a.tensor(0), a.tensor(1), a.tensor(2), a.dtype(3, DType::f32), a.real(4));
}

/// In place, so never through cuBLASLt.
Outputs addmm_(Shadow& m, Args a) {
  check_product(a.tensor(1), a.tensor(2), 2);
  gemm(m, a.tensor(1), a.tensor(2));
  return {a[0]};
}

Tensor bmm_of(Shadow& m, const Tensor& a, const Tensor& b, DType dtype) {
  check_product(a, b, 3);
  Tensor out = empty_beside(m, a, {a->sizes[0], a->sizes[1], b->sizes[2]}, dtype);
  if (out->host || out->count() == 0 || a->count() == 0) return out;
  const Tensor second = batched_operand(m, b);
  const Tensor first = batched_operand(m, a);
  m.use_cublas();
  return out;
}

Outputs bmm(Shadow& m, Args a) { return {bmm_of(m, a.tensor(0), a.tensor(1), a.tensor(0)->dtype)}; }
Outputs bmm_dtype(Shadow& m, Args a) { return {bmm_of(m, a.tensor(0), a.tensor(1), a.dtype(2, DType::f32))}; }
Outputs baddbmm(Shadow& m, Args a) { return {bmm_of(m, a.tensor(1), a.tensor(2), a.tensor(1)->dtype)}; }

Outputs baddbmm_dtype(Shadow& m, Args a) { return {bmm_of(m, a.tensor(1), a.tensor(2), a.dtype(3, DType::f32))}; }

Outputs baddbmm_(Shadow& m, Args a) {
  check_product(a.tensor(1), a.tensor(2), 3);
  const Tensor second = batched_operand(m, a.tensor(2));
  const Tensor first = batched_operand(m, a.tensor(1));
  m.use_cublas();
  return {a[0]};
}

/// Products of groups of rows with a matrix each (self, mat2, offs, bias, out_dtype): the groups' ends are on the GPU.
Outputs grouped_mm(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  if (x->dim() < 2 || y->dim() < 2)
    throw bad_input("grouped product of " + text_of(x->sizes) + " and " + text_of(y->sizes));
  Dims sizes{x->sizes[x->dim() - 2], y->sizes.back()};
  if (x->dim() == 3 && y->dim() == 3) sizes.insert(sizes.begin(), x->sizes[0]);
  if (x->dim() == 2 && y->dim() == 2) sizes.insert(sizes.begin(), a.tensor(2)->count());
  return {m.empty(sizes, a.dtype(4, x->dtype))};
}

/// One GEMM a batch entry, added up in the result.
Outputs addbmm(Shadow& m, Args a) {
  const Tensor &left = a.tensor(1), &right = a.tensor(2);
  check_product(left, right, 3);
  Tensor out = m.empty({left->sizes[1], right->sizes[2]}, left->dtype);
  m.use_cublas();
  return {out};
}

/// A matrix for GEMV: copied when neither of its strides is 1.
Tensor vector_product(Shadow& m, const Tensor& matrix, const Tensor& vector) {
  if (matrix->dim() != 2 || vector->dim() != 1 || matrix->sizes[1] != vector->sizes[0])
    throw bad_input("matrix-vector product of " + text_of(matrix->sizes) + " and " + text_of(vector->sizes));
  Tensor out = empty_beside(m, vector, {matrix->sizes[0]});
  if (out->host || out->count() == 0) return out;
  const bool strided = gemm_reads(matrix->sizes[0], matrix->sizes[1], matrix->strides[0], matrix->strides[1]);
  const Tensor x = vector->strides[0] == 0 ? m.empty(vector->sizes, vector->dtype) : vector;
  const Tensor copy = strided ? matrix : m.empty(matrix->sizes, matrix->dtype);
  m.use_cublas();
  return out;
}

Outputs mv(Shadow& m, Args a) { return {vector_product(m, a.tensor(0), a.tensor(1))}; }
Outputs addmv(Shadow& m, Args a) { return {vector_product(m, a.tensor(1), a.tensor(2))}; }

Outputs dot(Shadow& m, Args a) {
  Tensor out = empty_beside(m, a.tensor(0), {});
  if (!out->host) m.use_cublas();
  return {out};
}

/// One elementwise kernel over the broadcast operands.
Outputs addr(Shadow& m, Args a) {
  return {m.empty({a.tensor(1)->count(), a.tensor(2)->count()}, result_type(a.values().first(3)))};
}

// ---- composites ---------------------------------------------------------------------------------------------------

Tensor t_of(Shadow& m, const Tensor& x) { return m.one("aten::t", x); }
Tensor reshape(Shadow& m, const Tensor& x, const Dims& sizes) { return m.one("aten::reshape", x, sizes); }

Dims leading(const Tensor& x, std::size_t dropped) {
  return Dims(x->sizes.begin(), x->sizes.end() - static_cast<std::ptrdiff_t>(dropped));
}

/// should_fold: a large operand against one of at most two dimensions, as one GEMM over the merged leading dimensions.
bool folds(const Tensor& a, const Tensor& b) {
  const bool b_larger = b->dim() > a->dim();
  const Tensor& large = b_larger ? b : a;
  const Tensor& small = b_larger ? a : b;
  if (large->dim() < 3 || small->dim() > 2) return false;
  // A view of what needs a gradient says so even where none is recorded (torch.no_grad).
  if (needs_grad(small) || needs_grad(small->base)) return true;
  if (a->dim() == 2) return false;
  if (large->count() == 0) return true;
  for (std::size_t i = 0; i + 2 < large->dim(); ++i)
    if (large->strides[i] != large->strides[i + 1] * large->sizes[i + 1]) return false;
  return true;
}

Tensor folded(Shadow& m, const Tensor& a, const Tensor& b) {
  const bool transpose = b->dim() > a->dim();
  const Tensor large = transpose ? m.one("aten::transpose.int", b, -2, -1) : a;
  const Tensor small = !transpose ? b : a->dim() == 2 ? t_of(m, a) : a;
  Dims sizes = leading(large, 1);
  const std::int64_t rows = element_count(sizes);
  const Tensor merged = reshape(m, large, {rows, large->sizes.back()});
  if (small->dim() == 1) return m.one("aten::_unsafe_view", m.one("aten::mv", merged, small), sizes);
  sizes.push_back(small->sizes[1]);
  const Tensor product = m.one("aten::_unsafe_view", m.one("aten::mm", merged, small), sizes);
  if (!transpose) return product;
  return m.one("aten::contiguous", m.one("aten::transpose.int", product, -2, -1));
}

Tensor broadcast_product(Shadow& m, const Tensor& a, const Tensor& b) {
  const std::int64_t n = a->dim() > 1 ? a->sizes[a->dim() - 2] : 1, inner = a->sizes.back();
  const std::int64_t inner_right = b->dim() > 1 ? b->sizes[b->dim() - 2] : b->sizes.back();
  const std::int64_t p = b->dim() > 1 ? b->sizes.back() : 1;
  const Dims batch_a = a->dim() > 2 ? leading(a, 2) : Dims{}, batch_b = b->dim() > 2 ? leading(b, 2) : Dims{};
  Dims batch(std::max(batch_a.size(), batch_b.size()), 1);
  for (const Dims* d : {&batch_a, &batch_b}) {
    for (std::size_t i = 0; i < d->size(); ++i)
      if ((*d)[i] != 1) batch[batch.size() - d->size() + i] = (*d)[i];
  }
  const std::int64_t count = element_count(batch);
  const auto prepared = [&](const Tensor& t, const Dims& matrix) {
    Dims sizes = batch;
    sizes.insert(sizes.end(), matrix.begin(), matrix.end());
    const Tensor expanded = m.one("aten::expand", t, sizes);
    Dims merged{count};
    merged.insert(merged.end(), matrix.begin(), matrix.end());
    return reshape(m, expanded, merged);
  };
  Dims out = batch;
  if (a->dim() > 1) out.push_back(n);
  if (b->dim() > 1) out.push_back(p);
  const Tensor left = prepared(a, a->dim() > 1 ? Dims{n, inner} : Dims{inner});
  if (b->dim() == 1) {
    const Tensor right = m.one("aten::unsqueeze", prepared(b, {inner_right}), 2);
    return m.one("aten::_unsafe_view", m.one("aten::squeeze.dim", m.one("aten::bmm", left, right), -1), out);
  }
  const Tensor right = prepared(b, {inner_right, p});
  const Tensor three = a->dim() > 1 ? left : m.one("aten::unsqueeze", left, 1);
  return m.one("aten::_unsafe_view", m.one("aten::bmm", three, right), out);
}

Tensor matmul_of(Shadow& m, const Tensor& a, const Tensor& b) {
  if (a->dim() == 0 || b->dim() == 0) throw bad_input("matmul of a tensor without dimensions");
  if (a->dim() == 1 && b->dim() == 1) return m.one("aten::dot", a, b);
  if (a->dim() == 2 && b->dim() == 1) return m.one("aten::mv", a, b);
  if (a->dim() == 1 && b->dim() == 2)
    return m.one("aten::squeeze_.dim", m.one("aten::mm", m.one("aten::unsqueeze", a, 0), b), 0);
  if (a->dim() == 2 && b->dim() == 2) return m.one("aten::mm", a, b);
  return folds(a, b) ? folded(m, a, b) : broadcast_product(m, a, b);
}

Outputs matmul(Shadow& m, Args a) { return {matmul_of(m, a.tensor(0), a.tensor(1))}; }

/// F.linear: one addmm where the leading dimensions merge without a copy; else a product, and the bias added in place.
Outputs linear(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Tensor weight = a.tensor(1)->dim() == 2 ? a.tensor(1) : m.one("aten::unsqueeze", a.tensor(1), 0);
  const bool has_bias = a.given(2);
  if (x->dim() == 2 && has_bias) return m.all("aten::addmm", a[2], x, t_of(m, weight));
  if (has_bias && is_contiguous(*x) && x->dim() > 0) {
    Dims sizes = leading(x, 1);
    const Tensor merged = reshape(m, x, {element_count(sizes), x->sizes.back()});
    const Tensor product = m.one("aten::addmm", a[2], merged, t_of(m, weight));
    sizes.push_back(weight->sizes[0]);
    return m.all("aten::view", product, sizes);
  }
  Tensor product = matmul_of(m, x, t_of(m, weight));
  return has_bias ? m.all("aten::add_.Tensor", product, a[2]) : Outputs{product};
}

Outputs outer(Shadow& m, Args a) {
  return m.all("aten::mul.Tensor", reshape(m, a.tensor(0), {a.tensor(0)->count(), 1}), a[1]);
}

Outputs inner(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  if (x->dim() == 0 || y->dim() == 0) return m.all("aten::mul.Tensor", x, y);
  return m.all("aten::tensordot", x, y, Dims{-1}, Dims{-1});
}

Outputs tensordot(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  const auto arranged = [](const Tensor& t, const Dims& contracted, bool in_front) {
    std::vector<bool> taken(t->dim());
    Dims inner_dims, kept;
    std::int64_t kept_count = 1, contracted_count = 1;
    for (const std::int64_t d : contracted) {
      const std::size_t at = wrap_dim(d, t->dim());
      taken[at] = true;
      inner_dims.push_back(static_cast<std::int64_t>(at));
      contracted_count = checked_mul(contracted_count, t->sizes[at]);
    }
    Dims sizes;
    for (std::size_t i = 0; i < t->dim(); ++i) {
      if (taken[i]) continue;
      kept.push_back(static_cast<std::int64_t>(i));
      sizes.push_back(t->sizes[i]);
      kept_count = checked_mul(kept_count, t->sizes[i]);
    }
    Dims order = in_front ? inner_dims : kept;
    const Dims& rest = in_front ? kept : inner_dims;
    order.insert(order.end(), rest.begin(), rest.end());
    const Dims matrix = in_front ? Dims{contracted_count, kept_count} : Dims{kept_count, contracted_count};
    return std::tuple(order, matrix, sizes);
  };
  const auto [order_x, matrix_x, kept_x] = arranged(x, a.integers(2), false);
  const auto [order_y, matrix_y, kept_y] = arranged(y, a.integers(3), true);
  const Tensor left = reshape(m, m.one("aten::permute", x, order_x), matrix_x);
  const Tensor right = reshape(m, m.one("aten::permute", y, order_y), matrix_y);
  Dims sizes = kept_x;
  sizes.insert(sizes.end(), kept_y.begin(), kept_y.end());
  return {reshape(m, m.one("aten::mm", left, right), sizes)};
}

Outputs linalg_vecdot(Shadow& m, Args a) {
  return m.all("aten::sum.dim_IntList", m.one("aten::mul.Tensor", a[0], a[1]), dim_list(a, 2), false);
}

Outputs kron(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  const std::size_t rank = std::max(x->dim(), y->dim());
  Dims first, second, sizes;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto size = [&](const Tensor& t) { return i + t->dim() < rank ? 1 : t->sizes[i + t->dim() - rank]; };
    first.insert(first.end(), {size(x), 1});
    second.insert(second.end(), {1, size(y)});
    sizes.push_back(checked_mul(size(x), size(y)));
  }
  const Tensor left = m.one("aten::_unsafe_view", x, first);
  const Tensor right = m.one("aten::_unsafe_view", y, second);
  return m.all("aten::_unsafe_view", m.one("aten::mul.Tensor", left, right), sizes);
}

// ---- einsum -------------------------------------------------------------------------------------------------------

struct Equation {
  std::vector<std::string> inputs;
  std::string output;
};

/// "bij,bjk->bik" in letters. An ellipsis stands for '.' a dimension, as many as `ellipsis` says.
Equation parsed(std::string_view text, const ValueList& operands) {
  Equation e;
  std::string compact;
  for (const char c : text)
    if (c != ' ') compact += c;
  const auto arrow = compact.find("->");
  const std::string left = compact.substr(0, arrow);
  std::size_t ellipsis = 0;
  for (std::size_t from = 0; from <= left.size();) {
    const std::size_t comma = std::min(left.find(',', from), left.size());
    e.inputs.push_back(left.substr(from, comma - from));
    from = comma + 1;
  }
  if (e.inputs.size() != operands.size())
    throw bad_input("einsum of " + std::to_string(operands.size()) + " tensors with the equation " + std::string(text));
  for (std::size_t i = 0; i < e.inputs.size(); ++i)
    if (e.inputs[i].find("...") != std::string::npos && operands[i].tensor()->dim() + 3 >= e.inputs[i].size())
      ellipsis = std::max(ellipsis, operands[i].tensor()->dim() + 3 - e.inputs[i].size());
  // Dimensions of an ellipsis get letters that no equation can hold; the last ones are shared.
  const auto spelled = [&](std::string s, std::size_t count) {
    const auto at = s.find("...");
    if (at == std::string::npos) return s;
    std::string letters;
    for (std::size_t i = ellipsis - count; i < ellipsis; ++i) letters += static_cast<char>('0' + i);
    return s.replace(at, 3, letters);
  };
  if (arrow != std::string::npos) {
    e.output = spelled(compact.substr(arrow + 2), ellipsis);
  } else {
    std::string letters = left;
    std::erase_if(letters, [](char c) { return c == ',' || c == '.'; });
    std::ranges::sort(letters);
    for (std::size_t i = 0; i < ellipsis; ++i) e.output += static_cast<char>('0' + i);
    for (const char c : letters)
      if (std::ranges::count(letters, c) == 1) e.output += c;
  }
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    const bool dots = e.inputs[i].find("...") != std::string::npos;
    if (dots) e.inputs[i] = spelled(e.inputs[i], operands[i].tensor()->dim() + 3 - e.inputs[i].size());
    if (e.inputs[i].size() != operands[i].tensor()->dim())
      throw bad_input("einsum: " + text_of(operands[i].tensor()->sizes) + " with the subscripts " + std::string(text));
  }
  return e;
}

/// sumproduct_pair of two operands in one order of dimensions: batched GEMM over merged groups, or one product.
Tensor sumproduct(Shadow& m, const Tensor& left, const Tensor& right, const std::vector<bool>& summed) {
  const std::size_t rank = left->dim();
  Dims batch, contracted, only_left, only_right;
  std::array<std::int64_t, 4> sizes{1, 1, 1, 1};
  const auto add = [&sizes](Dims& group, std::size_t which, std::size_t d, std::int64_t size) {
    group.push_back(static_cast<std::int64_t>(d));
    sizes[which] = checked_mul(sizes[which], size);
  };
  Tensor a = left, b = right;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool in_left = left->sizes[d] != 1, in_right = right->sizes[d] != 1;
    if (summed[d]) {
      if (in_left && in_right)
        add(contracted, 1, d, left->sizes[d]);
      else if (in_left)
        a = m.one("aten::sum.dim_IntList", a, Dims{static_cast<std::int64_t>(d)}, true);
      else if (in_right)
        b = m.one("aten::sum.dim_IntList", b, Dims{static_cast<std::int64_t>(d)}, true);
    } else if (in_left && in_right) {
      add(batch, 0, d, left->sizes[d]);
    } else if (in_left) {
      add(only_left, 2, d, left->sizes[d]);
    } else {
      add(only_right, 3, d, right->sizes[d]);
    }
  }
  // Summed dimensions that only one side has count as contracted of size 1 in the orders below.
  Dims summed_away;
  for (std::size_t d = 0; d < rank; ++d)
    if (summed[d] && std::ranges::find(contracted, static_cast<std::int64_t>(d)) == contracted.end())
      summed_away.push_back(static_cast<std::int64_t>(d));
  Dims inner = contracted;
  inner.insert(inner.end(), summed_away.begin(), summed_away.end());
  const auto joined = [](std::initializer_list<const Dims*> groups) {
    Dims order;
    for (const Dims* g : groups) order.insert(order.end(), g->begin(), g->end());
    return order;
  };
  a = reshape(m, m.one("aten::permute", a, joined({&batch, &only_left, &inner, &only_right})),
              {sizes[0], sizes[2], sizes[1]});
  b = reshape(m, m.one("aten::permute", b, joined({&batch, &inner, &only_right, &only_left})),
              {sizes[0], sizes[1], sizes[3]});
  const Tensor product = m.one("aten::bmm", a, b);

  Dims out_sizes;
  const Dims order = joined({&batch, &only_left, &inner, &only_right});
  for (const std::int64_t d : order) {
    const auto at = static_cast<std::size_t>(d);
    out_sizes.push_back(summed[at] ? 1 : std::max(left->sizes[at], right->sizes[at]));
  }
  Dims back(rank);
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  const Tensor r = m.one("aten::permute", m.one("aten::view", product, out_sizes), back);
  Dims kept;
  for (std::size_t d = 0; d < rank; ++d)
    if (!summed[d]) kept.push_back(r->sizes[d]);
  return kept.size() == rank ? r : m.one("aten::view", r, kept);
}

/// Every operand is brought to one order of letters, output letters first, then contracted one after the other.
Outputs einsum(Shadow& m, Args a) {
  const ValueList& operands = a.list(1);
  if (operands.empty()) throw bad_input("einsum of no tensors");
  const Equation e = parsed(a.text(0), operands);
  std::string letters = e.output;
  std::string inner_letters;
  for (const std::string& s : e.inputs)
    for (const char c : s)
      if (letters.find(c) == std::string::npos && inner_letters.find(c) == std::string::npos) inner_letters += c;
  std::ranges::sort(inner_letters);
  letters += inner_letters;

  std::vector<Tensor> arranged;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Tensor t = operands[i].tensor();
    std::string own = e.inputs[i];
    for (std::size_t d = 0; d < own.size(); ++d) {
      const std::size_t again = own.find(own[d], d + 1);
      if (again == std::string::npos) continue;
      t = m.one("aten::diagonal", t, 0, static_cast<std::int64_t>(d), static_cast<std::int64_t>(again));
      const char c = own[d];
      own.erase(again, 1);
      own.erase(d, 1);
      own += c;
      --d;
    }
    for (const char c : letters) {
      if (own.find(c) != std::string::npos) continue;
      t = m.one("aten::unsqueeze", t, static_cast<std::int64_t>(own.size()));
      own += c;
    }
    Dims order;
    for (const char c : letters) order.push_back(static_cast<std::int64_t>(own.find(c)));
    arranged.push_back(m.one("aten::permute", t, order));
  }

  Tensor result = arranged[0];
  if (arranged.size() == 1) {
    Dims dims;
    for (std::size_t d = e.output.size(); d < letters.size(); ++d) dims.push_back(static_cast<std::int64_t>(d));
    return {dims.empty() ? result : m.one("aten::sum.dim_IntList", result, dims, false)};
  }
  std::vector<std::size_t> alive(letters.size());
  std::iota(alive.begin(), alive.end(), std::size_t{0});
  for (std::size_t i = 1; i < arranged.size(); ++i) {
    Tensor right = std::move(arranged[i]);
    // Dimensions summed away before are no longer there.
    if (alive.size() != letters.size()) {
      Dims sizes;
      for (const std::size_t d : alive) sizes.push_back(right->sizes[d]);
      right = reshape(m, right, sizes);
    }
    arranged[i] = nullptr;
    std::vector<bool> summed;
    std::vector<std::size_t> kept;
    for (const std::size_t d : alive) {
      bool now = d >= e.output.size();
      for (std::size_t j = i + 1; now && j < arranged.size(); ++j) now = arranged[j]->sizes[d] == 1;
      summed.push_back(now);
      if (!now) kept.push_back(d);
    }
    result = std::ranges::find(summed, true) == summed.end() ? m.one("aten::mul.Tensor", result, right)
                                                             : sumproduct(m, result, right, summed);
    alive = std::move(kept);
  }
  return {result};
}

Outputs chain_matmul(Shadow& m, Args a) {
  const ValueList& matrices = a.list(0);
  if (matrices.empty()) throw bad_input("a chain of no matrices");
  Tensor product = matrices[0].tensor();
  for (std::size_t i = 1; i < matrices.size(); ++i) product = m.one("aten::mm", product, matrices[i]);
  return {product};
}

/// One slice of the unrolled dimension after the other: the first two operands contracted, then with the
/// third, whose result outlives the first.
Outputs trilinear(Shadow& m, Args a) {
  const auto spread = [&m](Tensor t, const Dims& dims) {
    for (const std::int64_t d : dims) t = unsqueezed(m, t, d);
    return t;
  };
  const std::array<Value, 3> inputs{spread(a.tensor(0), a.integers(3)), spread(a.tensor(1), a.integers(4)),
                                    spread(a.tensor(2), a.integers(5))};
  const Dims full = broadcast_sizes(inputs);
  const std::size_t unrolled = wrap_dim(a.integer(7), full.size());
  constexpr std::int64_t most_slices = 1'000'000;
  if (full[unrolled] > most_slices) throw bad_input("bilinear with " + std::to_string(full[unrolled]) + " features");
  std::vector<bool> summed(full.size());
  for (const std::int64_t d : a.integers(6)) summed[wrap_dim(d, full.size())] = true;
  // What the third operand does not have is summed before it comes in.
  Dims out_sizes, slice_sizes, pair_sizes;
  for (std::size_t d = 0; d < full.size(); ++d) {
    const std::int64_t of_pair = std::max(inputs[0].tensor()->sizes[d], inputs[1].tensor()->sizes[d]);
    const bool gone = d == unrolled || (summed[d] && std::ranges::find(a.integers(5), static_cast<std::int64_t>(d)) !=
                                                         a.integers(5).end());
    pair_sizes.push_back(gone ? 1 : of_pair);
    if (summed[d]) continue;
    out_sizes.push_back(full[d]);
    slice_sizes.push_back(d == unrolled ? 1 : full[d]);
  }
  Tensor out = empty_beside(m, a.tensor(0), out_sizes, result_type(inputs));
  for (std::int64_t k = 0; k < full[unrolled]; ++k) {
    Tensor pair = empty_beside(m, out, pair_sizes);
    const Tensor contracted = empty_beside(m, out, slice_sizes);
    m.use_cublas();
    pair.reset();
  }
  return {out};
}

/// x1ᵀ W x2 + b over merged leading dimensions.
Outputs bilinear(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1), &weight = a.tensor(2);
  if (x->dim() == 0 || y->dim() == 0 || weight->dim() != 3)
    throw bad_input("bilinear with a weight " + text_of(weight->sizes));
  Dims sizes = leading(x, 1);
  const std::int64_t rows = element_count(sizes);
  sizes.push_back(weight->sizes[0]);
  const Tensor second = m.one("aten::reshape", y, Dims{rows, y->sizes.back()});
  const Tensor first = m.one("aten::reshape", x, Dims{rows, x->sizes.back()});
  const Tensor product =
      m.one("aten::_trilinear", first, weight, second, Dims{1, 3}, Dims{0}, Dims{1, 2}, Dims{2, 3}, 1);
  const Tensor out = m.one("aten::reshape", product, sizes);
  return a.given(3) ? m.all("aten::add.Tensor", out, a[3]) : Outputs{out};
}

// ---- distances ----------------------------------------------------------------------------------------------------

/// Squared norms and ones beside both operands, so that one product gives all distances.
Outputs euclidean_dist(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  const auto norm = [&](const Tensor& t) {
    const Tensor squares = empty_beside(m, t, t->sizes);
    return reduce(m, squares, {-1}, true, t->dtype);
  };
  Tensor x_norm = norm(x);
  Tensor x_ones = empty_beside(m, x_norm, x_norm->sizes);
  Tensor y_norm = norm(y);
  Tensor y_ones = empty_beside(m, y_norm, y_norm->sizes);
  const auto widened = [](const Tensor& t) {
    Dims sizes = t->sizes;
    sizes.back() += 2;
    return sizes;
  };
  Tensor scaled = empty_beside(m, x, x->sizes);
  const Tensor left = empty_beside(m, x, widened(x));
  x_ones.reset();
  x_norm.reset();
  scaled.reset();
  const Tensor right = empty_beside(m, y, widened(y));
  y_norm.reset();
  y_ones.reset();
  return {m.one("aten::matmul", left, transposed(m, right, -2, -1))};
}

Outputs cdist_forward(Shadow& m, Args a) {
  Dims sizes = a.tensor(0)->sizes;
  sizes.back() = a.tensor(1)->sizes[a.tensor(1)->dim() - 2];
  return {empty_beside(m, a.tensor(0), sizes)};
}

/// (grad, x1, x2, p, cdist): one distance's share a coordinate, then summed.
Outputs cdist_backward(Shadow& m, Args a) {
  const Tensor &x = a.tensor(1), &distances = a.tensor(4);
  Tensor out = empty_beside(m, x, x->sizes);
  Dims sizes = distances->sizes;
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  sizes.push_back(x->sizes.back());
  const Tensor shares = empty_beside(m, x, sizes);
  reduce_scratch(m, shares, {-3});
  return {out};
}

/// (x1, x2, p, compute_mode): by matrix product for p = 2 and more than 25 rows.
Outputs cdist(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  if (x->dim() < 2 || y->dim() < 2) throw bad_input("cdist of " + text_of(x->sizes) + " and " + text_of(y->sizes));
  const std::int64_t mode = a.given(3) ? a.integer(3) : 0;
  const std::int64_t rows = x->sizes[x->dim() - 2], columns = y->sizes[y->dim() - 2];
  if (a.real(2) != 2 || mode == 2 || (mode == 0 && rows <= 25 && columns <= 25))
    return m.all("aten::_cdist_forward", x, y, a[2], a[3]);
  const Dims batch_x = leading(x, 2), batch_y = leading(y, 2);
  Dims batch(std::max(batch_x.size(), batch_y.size()), 1);
  for (const Dims* d : {&batch_x, &batch_y})
    for (std::size_t i = 0; i < d->size(); ++i)
      if ((*d)[i] != 1) batch[batch.size() - d->size() + i] = (*d)[i];
  const auto merged = [&](const Tensor& t) {
    Dims sizes = batch;
    sizes.insert(sizes.end(), t->sizes.end() - 2, t->sizes.end());
    const Tensor expanded = m.one("aten::expand", t, sizes);
    Dims flat = batch.empty() ? Dims{} : Dims{element_count(batch)};
    flat.insert(flat.end(), t->sizes.end() - 2, t->sizes.end());
    return reshape(m, expanded, flat);
  };
  const Tensor left = merged(x);
  const Tensor right = merged(y);
  Dims sizes = batch;
  sizes.insert(sizes.end(), {rows, columns});
  return m.all("aten::view", m.one("aten::_euclidean_dist", left, right), sizes);
}

Outputs pdist_forward(Shadow& m, Args a) {
  const std::int64_t rows = a.tensor(0)->sizes.empty() ? 1 : a.tensor(0)->sizes[0];
  return {empty_beside(m, a.tensor(0), {checked_mul(rows, rows - 1) / 2})};
}

/// (grad, self, p, pdist): a share of each other row, then summed.
Outputs pdist_backward(Shadow& m, Args a) {
  const Tensor& x = a.tensor(1);
  Tensor out = empty_beside(m, x, x->sizes);
  const Tensor shares = empty_beside(m, x, {std::max<std::int64_t>(x->sizes[0] - 1, 0), x->sizes[0], x->sizes[1]});
  reduce_scratch(m, shares, {0});
  return {out};
}

Outputs pdist(Shadow& m, Args a) {
  return m.all("aten::_pdist_forward", m.one("aten::contiguous", a[0]), a.given(1) ? a[1] : Value(2.0));
}

Outputs linalg_cross(Shadow& m, Args a) {
  const auto inputs = a.values().first(2);
  return {empty_beside(m, a.tensor(0), broadcast_sizes(inputs), result_type(inputs))};
}

/// Without a dimension, the first of size 3.
Outputs cross(Shadow& m, Args a) {
  if (a.given(2)) return m.all("aten::linalg_cross", a[0], a[1], a[2]);
  const Dims& sizes = a.tensor(0)->sizes;
  const auto three = std::ranges::find(sizes, 3);
  if (three == sizes.end()) throw bad_input("cross of tensors " + text_of(sizes) + " without a dimension of size 3");
  return m.all("aten::linalg_cross", a[0], a[1], static_cast<std::int64_t>(three - sizes.begin()));
}

constexpr auto kernel = Operator::Kind::kernel;
constexpr auto composite = Operator::Kind::composite;

constexpr Operator operators[] = {
    {"aten::mm", kernel, mm},
    {"aten::mm.dtype", kernel, mm_dtype},
    {"aten::addmm", kernel, addmm},
    {"aten::addmm.dtype", kernel, addmm_dtype},
    {"aten::addmm_", kernel, addmm_},
    {"aten::bmm", kernel, bmm},
    {"aten::bmm.dtype", kernel, bmm_dtype},
    {"aten::baddbmm", kernel, baddbmm},
    {"aten::baddbmm.dtype", kernel, baddbmm_dtype},
    {"aten::baddbmm_", kernel, baddbmm_},
    {"aten::_grouped_mm", kernel, grouped_mm},
    {"aten::addbmm", kernel, addbmm},
    {"aten::addbmm_", kernel, in_place},
    {"aten::mv", kernel, mv},
    {"aten::addmv", kernel, addmv},
    {"aten::addmv_", kernel, in_place},
    {"aten::dot", kernel, dot},
    {"aten::vdot", kernel, dot},
    {"aten::addr", kernel, addr},
    {"aten::addr_", kernel, in_place},
    {"aten::_trilinear", kernel, trilinear},
    {"aten::_euclidean_dist", kernel, euclidean_dist},
    {"aten::_cdist_forward", kernel, cdist_forward},
    {"aten::_cdist_backward", kernel, cdist_backward},
    {"aten::_pdist_forward", kernel, pdist_forward},
    {"aten::_pdist_backward", kernel, pdist_backward},
    {"aten::linalg_cross", kernel, linalg_cross},
    {"aten::cdist", composite, cdist},
    {"aten::pdist", composite, pdist},
    {"aten::cross", composite, cross},
    {"aten::bilinear", composite, bilinear},
    {"aten::matmul", composite, matmul},
    {"aten::linalg_matmul", composite, forward_to<"aten::matmul">},
    {"aten::linear", composite, linear},
    {"aten::outer", composite, outer},
    {"aten::ger", composite, outer},
    {"aten::inner", composite, inner},
    {"aten::tensordot", composite, tensordot},
    {"aten::linalg_vecdot", composite, linalg_vecdot},
    {"aten::kron", composite, kron},
    {"aten::einsum", composite, einsum},
    {"aten::chain_matmul", composite, chain_matmul},
    {"aten::linalg_multi_dot", composite, chain_matmul},
};

}  // namespace

std::span<const Operator> matmul_operators() { return operators; }

}  // namespace headroom::shadow
