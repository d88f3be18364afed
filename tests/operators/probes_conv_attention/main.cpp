// Convolutions, norms, pools, attention and recurrent networks on the shadow machine against what the allocator of an
// H200 showed (torch 2.11.0+cu130), event by event, forward and backward. cases.jsonl: one probe a line, in the form
// that replay.h reads.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/conv_workspace.h"
#include "tests/operators/replay.h"

namespace headroom {
namespace {

TEST_CASE("recorded calls") {
  std::ifstream file(PROBES_FILE);
  REQUIRE(file);
  std::string line;
  int count = 0;
  while (std::getline(file, line)) {
    const auto probe = nlohmann::json::parse(line);
    const auto wanted = probes::recorded(probe), got = probes::replayed(probe);
    CAPTURE(probe["name"].get<std::string>());
    CHECK(probes::text_of(got.forward) == probes::text_of(wanted.forward));
    CHECK(probes::text_of(got.backward) == probes::text_of(wanted.backward));
    ++count;
  }
  CHECK(count > 100);
}

using shadow::ConvCall;
using shadow::ConvOperands;
using shadow::ConvShape;
using shadow::ConvWorkspaces;

ConvShape shape_of(std::int64_t batch, DType dtype) {
  ConvShape s;
  s.dtype = dtype;
  s.batch = batch;
  s.in_channels = s.out_channels = 64;
  s.kernel = {3, 3};
  s.stride = s.padding = s.dilation = {1, 1};
  s.input = {56, 56};
  return s;
}

TEST_CASE("convolution workspaces: measured, near a measured one, of an unknown kind") {
  const ConvWorkspaces table(
      "# test\n"
      "c 3 s1 p1 d1\n"
      "64>64 56;f16,32b32 xyw16 - 200000\n");
  const ConvOperands operands{Bytes(1000), Bytes(2000), Bytes(300)};

  const auto known = table.find(shape_of(16, DType::f32), ConvCall::forward, operands);
  CHECK(known.measured);
  CHECK(known.bytes == Bytes(1000 + 2000 + 300 + 16));

  const auto other_batch = table.find(shape_of(24, DType::f32), ConvCall::forward, operands);
  CHECK(!other_batch.measured);
  CHECK(other_batch.bytes == Bytes(3316));

  // 200,000 bytes were measured where the operands are of 16 (or 32) images; twice the images, twice the bytes.
  const std::int64_t map = 64 * 56 * 56 * 4, weight = 64 * 64 * 9 * 4;
  const ConvOperands of_64{Bytes(64 * map), Bytes(64 * map), Bytes(weight)};
  const auto grown = table.find(shape_of(64, DType::f32), ConvCall::weight_gradient, of_64);
  CHECK(!grown.measured);
  CHECK(grown.bytes.count() == 200000LL * (2 * 64 * map + weight) / (2 * 32 * map + weight));

  const auto not_measured = table.find(shape_of(16, DType::f32), ConvCall::input_gradient, operands);
  CHECK(!not_measured.measured);
  CHECK(not_measured.bytes == Bytes(3316));  // no entry has one: all operands are staged

  CHECK(!table.find(shape_of(16, DType::f16), ConvCall::forward, operands).measured);
}

TEST_CASE("a malformed table of convolution workspaces is refused") {
  for (const char* text :
       {"c 3 s1 p1 d1\n64>64", "64>64 56;f16 0 0 0\n", "c 3 s0 p1 d1\n", "c 3 s1 p1 d1\n64>64/0 56\n",
        "c 3 s1 p1 d1\n64>64 56;q16 0 0 0\n", "c 3 s1 p1 d1\n64>64 56;f16 0 0\n"}) {
    const ConvWorkspaces table(text);
    CHECK_THROWS_AS(table.find(shape_of(16, DType::f32), ConvCall::forward, {}), Error);
  }
}

}  // namespace
}  // namespace headroom
