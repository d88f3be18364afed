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
using shadow::ConvShape;
using shadow::ConvWorkspaces;

ConvShape shape_of(std::int64_t batch, DType dtype) {
  ConvShape s;
  s.dtype = dtype;
  s.batch = batch;
  s.in_channels = s.out_channels = 64;
  s.kernel = {3, 3};
  s.stride = s.padding = s.dilation = {1, 1};
  s.input = s.output = {56, 56};
  return s;
}

std::int64_t map_bytes(std::int64_t batch) { return batch * 64 * 56 * 56 * 4; }
constexpr std::int64_t weight_bytes = 64 * 64 * 9 * 4;

TEST_CASE("convolution workspaces: measured, near a measured one, of an unknown kind") {
  const ConvWorkspaces table(
      "# test\n"
      "3 s1 p1 d1 b 31\n"
      "64>64 56;32 xyw16 - 0;64 1 2 3\n"
      "3 s1 p1 d1 f 54\n"
      "64>64 56;16 xyw16 - 200000\n"
      "64>64 56;32 xyw16 0 200000\n");

  const auto known = table.find(shape_of(16, DType::f32), ConvCall::forward);
  CHECK(known.measured);
  CHECK(known.bytes == Bytes(2 * map_bytes(16) + weight_bytes + 16));

  const auto other_batch = table.find(shape_of(24, DType::f32), ConvCall::forward);
  CHECK(!other_batch.measured);
  CHECK(other_batch.bytes == Bytes(2 * map_bytes(24) + weight_bytes + 16));

  // 200,000 bytes were measured where the operands are of 32 images; twice the images, twice the bytes.
  const auto grown = table.find(shape_of(64, DType::f32), ConvCall::weight_gradient);
  CHECK(!grown.measured);
  CHECK(grown.bytes.count() == 200000LL * (2 * map_bytes(64) + weight_bytes) / (2 * map_bytes(32) + weight_bytes));

  const auto not_measured = table.find(shape_of(16, DType::f32), ConvCall::input_gradient);
  CHECK(!not_measured.measured);
  CHECK(not_measured.bytes == Bytes(0));  // as in the nearest call of which all is known

  const auto other_half = table.find(shape_of(16, DType::f16), ConvCall::forward);
  CHECK(!other_half.measured);
  CHECK(other_half.bytes == Bytes(1));  // as bfloat16

  ConvShape pointwise = shape_of(16, DType::f32);
  pointwise.kernel = {1, 1};
  const auto unknown_kind = table.find(pointwise, ConvCall::forward);
  CHECK(!unknown_kind.measured);
  CHECK(unknown_kind.bytes == Bytes(2 * map_bytes(16) + weight_bytes / 9 + 16));  // all operands are staged
}

TEST_CASE("convolution workspaces: what most of the nearest calls tell, and a gradient for each image") {
  const ConvWorkspaces table(
      "1 s1 p0 d1 f 90\n"
      "64>64 56;2 xyw 0 n16;16 xyw 0 n;24 xyw 0 n16\n"
      "64>72 56;16 xyw 0 50000000\n"
      "72>64 56;8 xy 0 n\n");
  ConvShape s = shape_of(17, DType::f32);
  s.kernel = {1, 1};
  s.padding = {0, 0};
  const std::int64_t each = 17LL * 64 * 64 * 4;
  CHECK(table.find(s, ConvCall::weight_gradient).bytes == Bytes(each));
  CHECK(table.find(s, ConvCall::forward).bytes == Bytes(2 * map_bytes(17) + weight_bytes / 9));
  // One layer alone tells of this one, and is outvoted.
  s.out_channels = 71;
  CHECK(table.find(s, ConvCall::weight_gradient).bytes == Bytes(17LL * 64 * 71 * 4));
}

TEST_CASE("convolution workspaces: channels are padded to what tensor cores read, unless written in capitals") {
  const ConvWorkspaces table(
      "3 s1 p1 d1 f 26\n"
      "3>64 56;16 xw YW 0;32 0 0\n");
  ConvShape s = shape_of(16, DType::f32);
  s.in_channels = 3;
  CHECK_THROWS_AS(table.find(s, ConvCall::forward), Error);
  const ConvWorkspaces whole(
      "3 s1 p1 d1 f 18\n"
      "3>64 56;16 xw W 0\n");
  CHECK(whole.find(s, ConvCall::forward).bytes == Bytes(16 * 4 * 56 * 56 * 4 + 4 * 64 * 9 * 4));
  CHECK(whole.find(s, ConvCall::input_gradient).bytes == Bytes(3 * 64 * 9 * 4));
}

TEST_CASE("a transposed convolution is the direct one with input and output exchanged") {
  const ConvWorkspaces table(
      "4 s2 p1 d1 f 26\n"
      "8>64 56;16 1001 1002 1003\n");
  ConvShape s = shape_of(16, DType::f32);
  s.transposed = true;
  s.out_channels = 8;
  s.kernel = {4, 4};
  s.stride = {2, 2};
  s.input = {28, 28};
  CHECK(table.find(s, ConvCall::forward).bytes == Bytes(1002));
  CHECK(table.find(s, ConvCall::input_gradient).bytes == Bytes(1001));
  CHECK(table.find(s, ConvCall::weight_gradient).bytes == Bytes(1003));
}

TEST_CASE("a malformed table of convolution workspaces is refused") {
  for (const char* text : {"3 s1 p1 d1 f 5\n64>64", "64>64 56;16 0 0 0\n", "3 s0 p1 d1 f 0\n",
                           "3 s1 p1 d1 f 11\n64>64/0 56\n", "3 s1 p1 d1 q 18\n64>64 56;16 0 0 0\n",
                           "3 s1 p1 d1 f 16\n64>64 56;16 0 0\n", "3 s1 p1 d1 f 99\n64>64 56;16 0 0 0\n"}) {
    const ConvWorkspaces table(text);
    CHECK_THROWS_AS(table.find(shape_of(16, DType::f32), ConvCall::forward), Error);
  }
}

}  // namespace
}  // namespace headroom
