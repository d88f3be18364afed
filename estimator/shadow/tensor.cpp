#include "estimator/shadow/tensor.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "estimator/shadow/autograd.h"
#include "estimator/shadow/recorder.h"

namespace headroom::shadow {

void Storage::destroy(Storage* s) {
  if (s->recorder) s->recorder->freed(*s);
  delete s;
}

void TensorImpl::destroy(TensorImpl* t) { delete t; }

Dims contiguous_strides(const Dims& sizes) {
  Dims strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step = checked_mul(step, std::max<std::int64_t>(sizes[i], 1));
  }
  return strides;
}

Dims channels_last_strides(const Dims& sizes) {
  // N C (D) H W in memory order N (D) H W C.
  Dims strides(sizes.size());
  std::int64_t step = 1;
  const auto place = [&](std::size_t i) {
    strides[i] = step;
    step = checked_mul(step, std::max<std::int64_t>(sizes[i], 1));
  };
  place(1);
  for (std::size_t i = sizes.size(); i-- > 2;) place(i);
  place(0);
  return strides;
}

namespace {

/// Whether the elements lie side by side in the dimensions' order; false where there are none.
bool dense_in_order(const Dims& sizes, const Dims& strides) {
  std::int64_t expected = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected || sizes[i] == 0) return false;
    expected *= sizes[i];
  }
  return true;
}

}  // namespace

bool is_contiguous(const TensorImpl& t) { return element_count(t.sizes) == 0 || dense_in_order(t.sizes, t.strides); }

namespace {

template <class F>
bool in_channels_last_order(const TensorImpl& t, F&& check) {
  if (t.sizes.size() != 4 && t.sizes.size() != 5) return false;
  if (!check(1)) return false;
  for (std::size_t i = t.sizes.size(); i-- > 2;)
    if (!check(i)) return false;
  return check(0);
}

}  // namespace

bool is_channels_last(const TensorImpl& t) {
  std::int64_t expected = 1;
  return in_channels_last_order(t, [&](std::size_t i) {
    if (t.sizes[i] != 1 && t.strides[i] != expected) return false;
    if (t.sizes[i] != 1) expected *= t.sizes[i];
    return true;
  });
}

bool suggests_channels_last(const TensorImpl& t) {
  // c10/core/MemoryFormat.h, is_channels_last_strides_2d_s4: N111 and 1C11-like tensors count as contiguous.
  if (t.sizes.size() != 4 && t.sizes.size() != 5) return false;
  std::int64_t least = 0;
  if (t.strides[1] == 0) return false;
  return in_channels_last_order(t, [&](std::size_t i) {
    if (t.sizes[i] == 0) return false;
    if (t.strides[i] < least) return false;
    if (i == 0 && least == t.strides[1]) return false;
    least = t.strides[i];
    if (t.sizes[i] > 1) least *= t.sizes[i];
    return true;
  });
}

bool is_non_overlapping_and_dense(const Dims& sizes, const Dims& strides) {
  if (dense_in_order(sizes, strides)) return true;
  Dims order;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1) order.push_back(static_cast<std::int64_t>(i));
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return strides[static_cast<std::size_t>(a)] < strides[static_cast<std::size_t>(b)];
  });
  std::int64_t expected = 1;
  for (const auto i : order) {
    if (sizes[static_cast<std::size_t>(i)] == 0) return true;
    if (strides[static_cast<std::size_t>(i)] != expected) return false;
    expected *= sizes[static_cast<std::size_t>(i)];
  }
  return true;
}

Bytes storage_bytes(const Dims& sizes, const Dims& strides, DType dtype) {
  std::int64_t span = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return Bytes(0);
    span = checked_add(span, checked_mul(sizes[i] - 1, strides[i]));
  }
  return bytes_of(dtype, span);
}

Dims dense_strides_like(const Dims& sizes, const Dims& strides) {
  // at::infer_dense_strides: dimensions in the order of their strides; zero strides and ties keep their place.
  const std::size_t n = sizes.size();
  Dims order(n);
  std::iota(order.rbegin(), order.rend(), 0);
  const auto should_swap = [&](std::int64_t a, std::int64_t b) {
    const auto sa = strides[static_cast<std::size_t>(a)], sb = strides[static_cast<std::size_t>(b)];
    if (sa == 0 || sb == 0) return 0;
    if (sa < sb) return -1;
    if (sa > sb) return 1;
    return sizes[static_cast<std::size_t>(a)] > sizes[static_cast<std::size_t>(b)] ? 1 : 0;
  };
  for (std::size_t i = 1; i < n; ++i) {
    std::size_t at = i;
    for (std::size_t j = i; j-- > 0;) {
      const int c = should_swap(order[j], order[at]);
      if (c > 0) {
        std::swap(order[j], order[at]);
        at = j;
      } else if (c < 0) {
        break;
      }
    }
  }
  Dims out(n);
  std::int64_t step = 1;
  for (const auto i : order) {
    out[static_cast<std::size_t>(i)] = step;
    step = checked_mul(step, std::max<std::int64_t>(sizes[static_cast<std::size_t>(i)], 1));
  }
  return out;
}

}  // namespace headroom::shadow
