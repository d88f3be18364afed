// The grid of convolutions: the same each time, of calls that exist, the likeliest first and none of them twice.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "calibration/fit/conv_grid.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <tuple>

namespace headroom {
namespace {

std::string written(const ConvProbe& p) {
  std::string s;
  for (const Dims* d : {&p.kernel, &p.stride, &p.padding, &p.dilation, &p.input}) s += text_of(*d);
  for (const std::int64_t n : {p.in_channels, p.out_channels, p.groups, p.batch}) s += " " + std::to_string(n);
  return s + " " + std::string(name_of(p.dtype)) + (p.channels_last ? " last" : "");
}

TEST_CASE("what is asked for") {
  ConvGrid grid, other;
  std::set<std::string> seen;
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> layers;  // kernel, in, out, map
  int again = 0;
  constexpr int asked = 100'000;
  for (int i = 0; i < asked; ++i) {
    const ConvProbe p = grid.next();
    const std::string text = written(p);
    CAPTURE(text);
    REQUIRE(text == written(other.next()));
    for (const std::size_t side : {0U, 1U})
      REQUIRE(p.input[side] + 2 * p.padding[side] > p.dilation[side] * (p.kernel[side] - 1));
    REQUIRE(p.in_channels % p.groups == 0);
    REQUIRE(p.out_channels % p.groups == 0);
    REQUIRE((p.dtype == DType::f32 || p.dtype == DType::bf16));
    again += seen.insert(text).second ? 0 : 1;
    if (p.groups == 1) layers.insert({p.kernel[0], p.in_channels, p.out_channels, p.input[0]});
  }
  CHECK(again < asked / 10);                   // of the random ones, one in five
  CHECK(layers.contains({3, 64, 64, 56}));     // a residual block
  CHECK(layers.contains({1, 256, 64, 56}));    // of bottlenecks
  CHECK(layers.contains({3, 3, 64, 224}));     // a stem
  CHECK(layers.contains({3, 128, 128, 128}));  // a U-Net's second level
}

}  // namespace
}  // namespace headroom
