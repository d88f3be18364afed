#include "estimator/shadow/kernels/iterator.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "estimator/base/error.h"

namespace headroom::shadow {
namespace {

int rank_of(DType t) {
  if (t == DType::b8) return 0;
  if (is_complex(t)) return 3;
  return is_integer(t) ? 1 : 2;
}

bool is_unsigned(DType t) { return t == DType::u8 || t == DType::u16 || t == DType::u32 || t == DType::u64; }

DType promote_integers(DType a, DType b) {
  if (is_unsigned(a) == is_unsigned(b)) return bits_of(a) >= bits_of(b) ? a : b;
  const DType with_sign = is_unsigned(a) ? b : a;
  const int needed = std::max(bits_of(with_sign), 2 * bits_of(is_unsigned(a) ? a : b));
  return needed <= 16 ? DType::i16 : needed <= 32 ? DType::i32 : DType::i64;
}

DType complex_of(DType real) { return real == DType::f64 ? DType::c128 : DType::c64; }

/// c10::promoteTypes.
DType promote(DType a, DType b) {
  if (a == DType::undefined || a == b) return b;
  if (b == DType::undefined) return a;
  if (rank_of(a) < rank_of(b)) std::swap(a, b);
  if (rank_of(a) > rank_of(b)) return is_complex(a) && is_float(b) ? promote(a, complex_of(b)) : a;
  if (is_integer(a)) return promote_integers(a, b);
  if (bits_of(a) == bits_of(b)) return DType::f32;  // float16 with bfloat16
  return bits_of(a) > bits_of(b) ? a : b;
}

/// What ResultTypeState collects: tensors with dimensions come before those without, and these before numbers.
struct Categories {
  DType dimensioned = DType::undefined;
  DType zero_dim = DType::undefined;
  DType number = DType::undefined;

  void add(const Value& v) {
    if (v.is_tensor()) {
      const TensorImpl& t = *v.tensor();
      if (t.dim() > 0)
        dimensioned = promote(dimensioned, t.dtype);
      else if (t.wrapped_number)
        number = promote(number, is_float(t.dtype) ? DType::f32 : t.dtype);
      else
        zero_dim = promote(zero_dim, t.dtype);
    } else if (v.is_bool()) {
      number = promote(number, DType::b8);
    } else if (v.is_integer()) {
      number = promote(number, DType::i64);
    } else if (v.is_real()) {
      number = promote(number, DType::f32);
    }
  }

  DType result() const { return combined(dimensioned, combined(zero_dim, number)); }

 private:
  static DType combined(DType higher, DType lower) {
    if (higher == DType::undefined) return lower;
    if (lower == DType::undefined || is_complex(higher)) return higher;
    if (is_float(higher)) return is_complex(lower) ? complex_of(higher) : higher;
    if (higher == DType::b8 || is_float(lower) || is_complex(lower)) return promote(higher, lower);
    return higher;
  }
};

/// One operand as the iterator sees it: sizes, and strides of the broadcast shape.
struct Operand {
  const TensorImpl* tensor = nullptr;  ///< null: a Python number, which the iterator wraps into a 0-dim tensor
  Dims strides;
};

Dims broadcast_strides(const TensorImpl& t, const Dims& sizes) {
  Dims strides(sizes.size(), 0);
  const std::size_t lead = sizes.size() - t.dim();
  for (std::size_t i = 0; i < t.dim(); ++i)
    strides[lead + i] = t.sizes[i] == 1 && sizes[lead + i] != 1 ? 0 : t.strides[i];
  return strides;
}

/// compute_fast_setup_type: all inputs of one shape that are contiguous, channels-last, or dense with equal strides.
std::optional<Dims> fast_strides(const Dims& sizes, std::span<const Operand> operands) {
  bool contiguous = true, channels_last = true, dense = true, same = true;
  for (const Operand& o : operands) {
    if (!o.tensor || o.tensor->sizes != sizes) return std::nullopt;
    contiguous = contiguous && is_contiguous(*o.tensor);
    channels_last = channels_last && is_channels_last(*o.tensor);
    dense = dense && is_dense(*o.tensor);
    same = same && o.tensor->strides == operands.front().tensor->strides;
  }
  if (contiguous) return contiguous_strides(sizes);
  if (channels_last) return channels_last_strides(sizes);
  if (dense && same) return operands.front().tensor->strides;
  return std::nullopt;
}

/// > 0: dimensions a (inner) and b (outer) are to be swapped; < 0: they are in order; 0: no operand decides.
int should_swap(std::size_t a, std::size_t b, const Dims& sizes, std::span<const Operand> operands) {
  for (const Operand& o : operands) {
    const auto sa = o.strides[a], sb = o.strides[b];
    if (sa == 0 || sb == 0) continue;
    if (sa != sb) return sa < sb ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

}  // namespace

namespace {

/// Widens `sizes` by `s`; false when a dimension has two sizes.
bool broadcast_into(Dims& sizes, const Dims& s) {
  if (s.size() > sizes.size()) sizes.insert(sizes.begin(), s.size() - sizes.size(), 1);
  const std::size_t lead = sizes.size() - s.size();
  for (std::size_t i = 0; i < s.size(); ++i) {
    std::int64_t& d = sizes[lead + i];
    if (s[i] == 1 || s[i] == d) continue;
    if (d != 1) return false;
    d = s[i];
  }
  return true;
}

}  // namespace

Dims broadcast_sizes(std::span<const Value> inputs) {
  Dims sizes;
  for (const Value& v : inputs) {
    if (!v.is_tensor()) continue;
    const Dims before = sizes;
    if (!broadcast_into(sizes, v.tensor()->sizes))
      throw bad_input("sizes " + text_of(before) + " and " + text_of(v.tensor()->sizes) + " do not broadcast");
  }
  return sizes;
}

bool broadcasts(std::span<const Value> inputs) {
  Dims sizes;
  return std::ranges::all_of(
      inputs, [&](const Value& v) { return !v.is_tensor() || broadcast_into(sizes, v.tensor()->sizes); });
}

DType result_type(std::span<const Value> inputs) {
  Categories c;
  for (const Value& v : inputs) c.add(v);
  return c.result();
}

DType float_result_type(std::span<const Value> inputs) {
  const DType t = result_type(inputs);
  return is_float(t) || is_complex(t) ? t : DType::f32;
}

Dims iterator_strides(const Dims& sizes, std::span<const Value> inputs) {
  std::vector<Operand> operands;
  for (const Value& v : inputs) {
    if (v.is_tensor())
      operands.push_back({v.tensor().get(), broadcast_strides(*v.tensor(), sizes)});
    else if (v.is_number())
      operands.push_back({nullptr, Dims(sizes.size(), 0)});
  }
  if (operands.empty()) return contiguous_strides(sizes);
  if (auto strides = fast_strides(sizes, operands)) return *std::move(strides);

  // reorder_dimensions: an insertion sort from the innermost dimension outwards.
  const std::size_t n = sizes.size();
  Dims order(n);
  std::iota(order.rbegin(), order.rend(), 0);
  for (std::size_t i = 1; i < n; ++i) {
    std::size_t outer = i;
    for (std::size_t inner = i; inner-- > 0;) {
      const int c =
          should_swap(static_cast<std::size_t>(order[inner]), static_cast<std::size_t>(order[outer]), sizes, operands);
      if (c < 0) break;
      if (c > 0) {
        std::swap(order[inner], order[outer]);
        outer = inner;
      }
    }
  }
  if (std::is_sorted(order.rbegin(), order.rend())) return contiguous_strides(sizes);
  Dims strides(n);
  std::int64_t next = 1;
  for (const std::int64_t d : order) {
    strides[static_cast<std::size_t>(d)] = next;
    next = checked_mul(next, sizes[static_cast<std::size_t>(d)]);
  }
  return strides;
}

Tensor elementwise(Shadow& m, DType dtype, std::span<const Value> inputs) {
  const Dims sizes = broadcast_sizes(inputs);
  const bool host = std::ranges::none_of(inputs, [](const Value& v) { return v.is_tensor() && !v.tensor()->host; });
  if (host) return m.host_tensor(sizes, dtype);
  return m.empty_strided(sizes, iterator_strides(sizes, inputs), dtype);
}

}  // namespace headroom::shadow
