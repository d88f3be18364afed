#include "estimator/shadow/kernels/reduce.h"
#include "estimator/shadow/kernels/ceil_div.h"

#include <algorithm>
#include <bit>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/views.h"

namespace headroom::shadow {
namespace {

/// A dimension of the iterator: how far one step goes in the output (0: reduced) and in the input, in elements.
struct Axis {
  std::int64_t size = 1;
  std::int64_t out = 0;
  std::int64_t in = 0;
};
using Axes = boost::container::small_vector<Axis, 6>;

struct Scratch {
  std::int64_t buffer = 0;
  std::int64_t semaphores = 0;
};

constexpr std::int64_t max_threads = 512;
constexpr std::int64_t warp = 32;

std::int64_t largest_power_of_two(std::int64_t n, std::int64_t limit) {
  return n >= limit
             ? limit
             : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

/// TensorIterator::reorder_dimensions for a reduction: reduced dimensions inside, others by the output's strides.
void reorder(Axes& axes) {
  const auto should_swap = [](const Axis& inner, const Axis& outer) {
    if ((inner.out == 0) != (outer.out == 0)) return outer.out == 0 ? 1 : -1;
    for (const auto& [a, b] : {std::pair{inner.out, outer.out}, std::pair{inner.in, outer.in}}) {
      if (a == 0 || b == 0) continue;
      if (a != b) return a < b ? -1 : 1;
      if (inner.size > outer.size) return 1;
    }
    return 0;
  };
  for (std::size_t i = 1; i < axes.size(); ++i) {
    std::size_t outer = i;
    for (std::size_t inner = i; inner-- > 0;) {
      const int c = should_swap(axes[inner], axes[outer]);
      if (c < 0) break;
      if (c > 0) {
        std::swap(axes[inner], axes[outer]);
        outer = inner;
      }
    }
  }
}

/// TensorIterator::coalesce_dimensions.
void coalesce(Axes& axes) {
  if (axes.size() <= 1) return;
  std::size_t last = 0;
  for (std::size_t i = 1; i < axes.size(); ++i) {
    Axis& a = axes[last];
    const Axis& b = axes[i];
    if (a.size == 1 || b.size == 1 || (a.size * a.out == b.out && a.size * a.in == b.in)) {
      if (a.size == 1) a.out = b.out, a.in = b.in;
      a.size *= b.size;
    } else {
      axes[++last] = b;
    }
  }
  axes.resize(last + 1);
}

/// The axes of reducing `t` over the dimensions marked in `reduced`, as the iterator orders and merges them.
Axes iterator_axes(const TensorImpl& t, const std::vector<bool>& reduced) {
  Axes axes(t.dim());
  std::int64_t stride = 1;
  for (std::size_t i = t.dim(); i-- > 0;) {
    // The iterator starts from the last dimension.
    Axis& a = axes[t.dim() - 1 - i];
    a = {t.sizes[i], reduced[i] ? 0 : stride, t.strides[i]};
    if (!reduced[i]) stride *= t.sizes[i];
  }
  reorder(axes);
  coalesce(axes);
  return axes;
}

/// get_output_vec_size: 4, 2 or 1 outputs a thread.
std::int64_t output_vector(const TensorImpl& t, const Axes& axes, std::size_t first_kept) {
  std::int64_t v = 4;
  const auto divides = [&v](std::int64_t n) {
    while (n % v != 0) v /= 2;
  };
  divides(t.offset);
  divides(axes[first_kept].size);
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (i != first_kept) divides(axes[i].in);
  return v;
}

/// setReduceConfig, and the global memory that the configuration asks for.
Scratch configure(const DeviceFacts& device, const TensorImpl& t, const Axes& axes, std::int64_t accumulator) {
  const auto reduced_axes =
      static_cast<std::size_t>(std::ranges::count_if(axes, [](const Axis& a) { return a.out == 0; }));
  std::int64_t outputs = 1, inputs = 1;
  for (const Axis& a : axes) (a.out == 0 ? inputs : outputs) *= a.size;

  const bool along_input = reduced_axes == axes.size() || axes[0].in < axes[reduced_axes].in;
  const std::int64_t fastest = axes.empty() ? 1 : axes[along_input ? 0 : reduced_axes].in;
  std::int64_t dim0 = along_input ? inputs : outputs;
  const std::int64_t dim1 = along_input ? outputs : inputs;
  std::int64_t vector = 1;
  if (fastest == 1) {
    if (along_input && dim0 >= 128 && reduced_axes == 1) {
      dim0 /= 4;
    } else if (!along_input) {
      vector = output_vector(t, axes, reduced_axes);
      dim0 /= vector;
    }
  }

  const std::int64_t most = max_threads / vector;
  const std::int64_t d0 = largest_power_of_two(dim0, most), d1 = largest_power_of_two(dim1, most);
  const std::int64_t height = std::min(d1, most / std::min(d0, warp));
  const std::int64_t width = std::min(d0, most / height);

  std::int64_t step_input = 1, step_output = 1;
  (along_input ? step_input : step_output) *= width;
  const bool across_warps = ceil_div(inputs, step_input) >= std::min<std::int64_t>(height * 16, 256);
  (across_warps ? step_input : step_output) *= height;

  const std::int64_t target = device.sm_count * (device.threads_per_sm / (width * height));
  const std::int64_t grid = ceil_div(outputs / vector, step_output);
  const std::int64_t values = ceil_div(inputs, step_input);
  if (!across_warps || values < 256 || grid > target) return {};
  const std::int64_t ctas = std::max(std::min(ceil_div(target, grid), ceil_div(values, 16)), ceil_div(values, 256));
  if (ctas <= 1) return {};
  std::int64_t bytes = checked_mul(checked_mul(accumulator, outputs), ctas);
  if (!along_input) bytes = checked_mul(bytes, width * vector);
  return {bytes, 4 * grid};
}

/// TensorIterator::can_use_32bit_indexing, for input and output.
bool fits_32_bits(const Axes& axes, std::int64_t element) {
  std::int64_t count = 1, furthest = 1, furthest_out = 1;
  for (const Axis& a : axes) {
    count = checked_mul(count, a.size);
    furthest = checked_add(furthest, checked_mul(a.size - 1, checked_mul(a.in, element)));
    furthest_out = checked_add(furthest_out, checked_mul(a.size - 1, checked_mul(a.out, element)));
  }
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  return count <= limit && furthest <= limit && furthest_out <= limit;
}

void run_kernel(Shadow& m, const TensorImpl& t, Axes axes, std::int64_t accumulator) {
  const std::int64_t element = bytes_of(t.dtype, 1).count();
  if (!fits_32_bits(axes, element)) {
    // with_32bit_indexing: halves along the axis that reaches furthest, one kernel after the other.
    const auto widest =
        std::ranges::max_element(axes, {}, [](const Axis& a) { return (a.size - 1) * std::max(a.in, a.out); });
    if (widest->size > 1) {
      const std::int64_t first = widest->size / 2, rest = widest->size - first;
      widest->size = first;
      run_kernel(m, t, axes, accumulator);
      widest->size = rest;
      run_kernel(m, t, std::move(axes), accumulator);
      return;
    }
  }
  const Scratch s = configure(m.device(), t, axes, accumulator);
  if (s.buffer == 0) return;
  const auto buffer = m.scratch(Bytes(s.buffer));
  const auto semaphores = m.scratch(Bytes(s.semaphores));
}

std::vector<bool> marked(const TensorImpl& t, const Dims& dims) {
  std::vector<bool> reduced(t.dim(), dims.empty());
  for (const std::int64_t d : dims)
    if (t.dim() > 0) reduced[wrap_dim(d, t.dim())] = true;
  return reduced;
}

}  // namespace

void reduce_scratch(Shadow& m, const Tensor& input, const Dims& dims, ReduceElement element) {
  if (input->host || input->count() == 0) return;
  run_kernel(m, *input, iterator_axes(*input, marked(*input, dims)), element.accumulator_bytes);
}

Dims reduced_sizes(const TensorImpl& t, const Dims& dims, bool keepdim) {
  const std::vector<bool> reduced = marked(t, dims);
  Dims sizes;
  for (std::size_t i = 0; i < t.dim(); ++i) {
    if (!reduced[i])
      sizes.push_back(t.sizes[i]);
    else if (keepdim)
      sizes.push_back(1);
  }
  return sizes;
}

Tensor reduce(Shadow& m, const Tensor& input, const Dims& dims, bool keepdim, DType out_dtype, ReduceElement element) {
  Tensor out = empty_beside(m, input, reduced_sizes(*input, dims, keepdim), out_dtype);
  reduce_scratch(m, input, dims, element);
  return out;
}

Tensor sum_to(Shadow& m, const Tensor& grad, const Dims& sizes) {
  if (grad->sizes == sizes) return grad;
  if (grad->dim() < sizes.size())
    throw bad_input("a gradient " + text_of(grad->sizes) + " cannot be summed to " + text_of(sizes));
  const std::size_t lead = grad->dim() - sizes.size();
  Dims dims;
  for (std::size_t i = 0; i < grad->dim(); ++i)
    if (i < lead || (sizes[i - lead] == 1 && grad->sizes[i] != 1)) dims.push_back(static_cast<std::int64_t>(i));
  if (dims.empty()) return grad;
  const Tensor sum = reduce(m, grad, dims, true, grad->dtype);
  return lead > 0 ? m.alias(sum, sizes, contiguous_strides(sizes), sum->offset) : sum;
}

}  // namespace headroom::shadow
