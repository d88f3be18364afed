#include "calibration/fit/conv_grid.h"

#include <array>
#include <cmath>
#include <cstddef>

namespace headroom {
namespace {

struct Geometry {
  int height, width, stride, dilation, weight;
  int padding(int kernel) const { return same ? dilation * (kernel - 1) / 2 : 0; }
  bool same = true;  ///< the map keeps its size, but for the stride
};
/// By how often networks use them.
constexpr auto geometries = std::to_array<Geometry>(
    {{3, 3, 1, 1, 28},          {1, 1, 1, 1, 26},       {3, 3, 2, 1, 12},       {1, 1, 2, 1, 6}, {4, 4, 2, 1, 8},
     {7, 7, 2, 1, 4},           {5, 5, 1, 1, 4},        {2, 2, 2, 1, 4},        {7, 7, 1, 1, 2}, {4, 4, 4, 1, 2, false},
     {4, 4, 1, 1, 2, false},    {5, 5, 2, 1, 2},        {8, 8, 8, 1, 2, false}, {3, 3, 1, 4, 2}, {3, 3, 1, 1, 2, false},
     {16, 16, 16, 1, 2, false}, {3, 3, 2, 1, 2, false}, {3, 3, 1, 2, 2},        {1, 7, 1, 1, 1}, {7, 1, 1, 1, 1},
     {1, 3, 1, 1, 2},           {3, 1, 1, 1, 1},        {1, 5, 1, 1, 1}});
constexpr auto channels =
    std::to_array<int>({8,   16,  24,  32,  48,  64,  80,  96,  112, 128, 144, 160,  192,  224,  256,
                        288, 320, 384, 448, 480, 512, 576, 640, 768, 832, 960, 1024, 1280, 1536, 2048});
constexpr auto maps = std::to_array<int>(
    {1, 2, 4, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384});
constexpr auto batches =
    std::to_array<int>({1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 112, 128, 192, 256});
/// Images, masks and classes: what a network's last convolution makes, or, transposed, reads.
constexpr auto heads = std::to_array<int>({1, 2, 3, 3, 4, 10, 19, 20, 21, 80, 91, 100, 150});
/// Bytes of the largest operand: beyond them cuDNN might take another kernel for want of memory.
constexpr double largest_operand = 1'300'000'000;
/// Beyond this many operations the time is better spent on others.
constexpr double most_work = 3e11;

// The distributions of <random> differ between libraries; these do not.
std::size_t below(std::mt19937& r, std::size_t n) { return r() % n; }
bool chance(std::mt19937& r, unsigned percent) { return below(r, 100) < percent; }

template <std::size_t N>
int one_of(std::mt19937& r, const std::array<int, N>& list) {
  return list[below(r, N)];
}

const Geometry& geometry(std::mt19937& r) {
  int total = 0;
  for (const Geometry& g : geometries) total += g.weight;
  auto at = static_cast<int>(below(r, static_cast<std::size_t>(total)));
  for (const Geometry& g : geometries)
    if ((at -= g.weight) < 0) return g;
  return geometries.front();
}

ConvProbe random_probe(std::mt19937& r) {
  const Geometry& g = geometry(r);
  ConvProbe p;
  p.kernel = {g.height, g.width};
  p.stride = {g.height > 1 || g.width == 1 ? g.stride : 1, g.stride};
  p.padding = {g.padding(g.height), g.padding(g.width)};
  p.dilation = {g.dilation, g.dilation};
  const bool pointwise = g.height * g.width == 1;
  const int c = one_of(r, channels);
  p.in_channels = p.out_channels = c;
  const auto kind = below(r, 100);
  if (!pointwise && kind < 14) {
    p.in_channels = chance(r, 70) ? 3 : one_of(r, heads);  // a stem
  } else if (kind < 22) {
    p.out_channels = one_of(r, heads);
  } else if (kind < 40) {
    p.out_channels = 2 * c;
  } else if (kind < 52) {
    p.in_channels = 2 * c;  // joined
  } else if (pointwise && kind < 78) {
    p.out_channels = chance(r, 50) ? 4 * c : std::max(c / 4, 8);
  } else if (kind < 66) {
    p.out_channels = one_of(r, channels);
  } else if (kind < 72) {
    p.in_channels = one_of(r, channels) + c;
  }
  if (!pointwise && p.in_channels == p.out_channels) {
    if (chance(r, 12))
      p.groups = c;  // depthwise
    else if (c % 32 == 0 && chance(r, 12))
      p.groups = 32;
  }
  const int side = one_of(r, maps);
  p.input = {g.height == 1 && g.width > 1 && chance(r, 30) ? 1 : side, side};  // or a sequence
  p.batch = one_of(r, batches);
  p.dtype = chance(r, 50) ? DType::f32 : DType::bf16;
  return p;
}

bool affordable(const ConvProbe& p) {
  const auto out = [&](std::size_t i) {
    return (p.input[i] + 2 * p.padding[i] - p.dilation[i] * (p.kernel[i] - 1) - 1) / p.stride[i] + 1;
  };
  if (p.input[0] + 2 * p.padding[0] < p.dilation[0] * (p.kernel[0] - 1) + 1) return false;
  const double element = p.dtype == DType::f32 ? 4 : 2;
  const double pixels = static_cast<double>(p.batch * out(0) * out(1));
  const double input = element * static_cast<double>(p.batch * p.in_channels * p.input[0] * p.input[1]);
  const double work =
      2 * pixels * static_cast<double>(p.out_channels * p.in_channels / p.groups * p.kernel[0] * p.kernel[1]);
  return input <= largest_operand && element * pixels * static_cast<double>(p.out_channels) <= largest_operand &&
         work <= most_work;
}

}  // namespace

ConvProbe ConvGrid::next() {
  while (true)
    if (ConvProbe p = random_probe(random_); affordable(p)) return p;
}

}  // namespace headroom
