#include "estimator/plan/checkpoint/kernel_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace headroom {
namespace {

constexpr double multiprocessors = 132;
/// Of a product's or convolution's result, rows and columns that a block of threads makes.
constexpr double tile = 128;

double ceil_to(double n, double unit) { return std::ceil(n / unit) * unit; }

/// Share of the card's operations that count: the last wave of tiles leaves multiprocessors idle, tiles at the edges
/// are partly empty.
double busy(double rows, double columns, double batch = 1) {
  const double tiles = batch * std::ceil(rows / tile) * std::ceil(columns / tile);
  if (tiles == 0) return 1;
  return batch * rows * columns / (tile * tile * ceil_to(tiles, multiprocessors));
}

/// The largest power of two up to 8 that divides both.
int alignment(double a, double b) {
  int n = 8;
  while (n > 1 && (std::fmod(a, n) != 0 || std::fmod(b, n) != 0)) n /= 2;
  return n;
}

/// Of tensor cores in half precision, by alignment (1, 2, 4, 8): kernels for odd sizes read one element at a time.
double half_rate(int aligned, bool forward) {
  if (aligned == 1) return forward ? 92e12 : 140e12;
  return aligned == 2 ? 215e12 : aligned == 4 ? 280e12 : 790e12;
}

/// Time of work that computes and moves at once: neither hides the other quite.
double together(double computing, double moving) { return std::hypot(computing, moving); }

}  // namespace

KernelTime ProductKernels::time() const {
  const double size = half ? 2 : 4;
  const int aligned = alignment(columns, depth);
  const auto one = [&](double m, double n, double k, double count, bool forward) {
    // Of many small products each fills tiles of its own; of one large product the kernel fits the tiles to it.
    const double used = busy(m, n, count);
    double rate = half ? half_rate(aligned, forward) : 350e12;
    if (!half && !tf32)
      rate = (forward ? 50.5e12 : 55e12) * std::max(used, count > 1 ? 0.4 : forward ? 0.6 : 0.72);
    else if (count > 1)
      rate *= std::max(used, 0.1);
    const double moved = (m * k + k * n + m * n) * count * size;
    return launch_seconds + together(2 * m * n * k * count / rate, moved / memory_rate);
  };
  return {.forward = one(rows, columns, depth, batch, true),
          .backward = (gradients > 0 ? one(rows, depth, columns, batch, false) : 0) +
                      (gradients > 1 ? one(columns, depth, rows, batch, false) : 0)};
}

KernelTime ConvolutionKernels::time() const {
  const double moved = (input + output) * (half ? 2 : 4);
  const double places = output / std::max(out_channels, 1.0);
  const double rate = (half ? 700e12 : 450e12) * std::max(busy(places, out_channels), 0.3);
  KernelTime t;
  if (window == 1 && !transposed) {
    const bool strided = output * in_channels < input * out_channels;
    t.forward =
        together(flops() / (0.6 * rate), moved / 4e12) + (strided ? 2 * input * (half ? 2 : 4) / memory_rate : 0);
    t.backward = gradients * (flops() / (0.55 * rate) + 1.4 * moved / memory_rate);
  } else {
    const double converted = channels_last ? 0 : 2;
    const double few = std::min((transposed ? out_channels : in_channels) / 64, 1.0);
    t.forward = flops() / (rate * few) + (1 + converted) * moved / memory_rate;
    t.backward = gradients *
                 (flops() / (rate * few * (gradients > 1 ? 0.67 : 1.6)) + (1 + 1.25 * converted) * moved / memory_rate);
  }
  t.forward += 4 * launch_seconds;
  if (gradients > 0) t.backward += 6 * launch_seconds;
  return t;
}

KernelTime DepthwiseKernels::time() const {
  struct Rates {
    double forward, backward;
  };
  // By window (5 x 5 and more: wide), order of axes and precision.
  constexpr Rates narrow{1.9e12, 0.8e12}, wide{2.9e12, 1.6e12};
  constexpr std::array narrow_last{Rates{5.8e12, 2.2e12}, Rates{8.0e12, 3.0e12}};
  constexpr std::array wide_last{Rates{4.4e12, 0.67e12}, Rates{9.0e12, 5.5e12}};
  const std::size_t precision = half ? 1 : 0;
  const bool is_wide = window >= 25;
  const Rates r = !channels_last ? (is_wide ? wide : narrow) : is_wide ? wide_last[precision] : narrow_last[precision];
  return {.forward = launch_seconds + flops() / r.forward,
          .backward = gradients > 0 ? launch_seconds + gradients * flops() / r.backward : 0};
}

KernelTime AttentionKernels::time() const {
  const double moved = (heads * queries + key_heads * keys) * (width + value_width) * (half ? 2 : 4);
  KernelTime t;
  if (half) {
    // cuDNN's: of what a causal mask hides most is left out.
    const double computed = flops() * (causal ? 0.5 : 1) * (dropout ? 1.4 : 1);
    t.forward = 2 * launch_seconds + computed / 370e12 + moved / memory_rate;
    t.backward = 4 * launch_seconds + 2.5 * computed / 300e12 + 2 * moved / memory_rate;
  } else {
    // Memory-efficient: blocks of 64 queries, keys and elements, those on the diagonal whole.
    constexpr double block = 64;
    const double whole = ceil_to(queries, block) / queries * ceil_to(keys, block) / keys;
    const double rate = 34e12 * std::min(width / block, 1.0) / whole;
    const double computed = flops() * (causal ? 0.65 : 1) * (dropout ? 1.3 : 1);
    t.forward = launch_seconds + computed / rate;
    t.backward = 4 * launch_seconds + 2.5 * computed / rate + moved / memory_rate;
  }
  if (!needs_grad) t.backward = 0;
  return t;
}

}  // namespace headroom
