// PYTORCH_ALLOC_CONF: what torch 2.11.0 itself answered to these texts, and what other versions do otherwise.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "estimator/allocate/options.h"
#include "estimator/base/error.h"

namespace headroom {
namespace {

std::optional<Error> refusal(const std::string& text, TorchVersion torch = {}) {
  try {
    parse_allocator_options(text, torch);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST_CASE("every recorded answer of torch 2.11") {
  std::ifstream file(ALLOCATE_TEST_FOLDER "/options_2.11.json");
  const auto rows = nlohmann::json::parse(file);
  REQUIRE(rows.size() > 90);
  for (const auto& row : rows) {
    const std::string text = row[0];
    CAPTURE(text);
    if (row[1] != "ok") {
      const auto error = refusal(text);
      REQUIRE(error);
      CHECK(error->code() == Exit::usage);
      // An internal assertion of PyTorch is quoted without its source line.
      const std::string recorded = row[2];
      const std::size_t cut = recorded.find("...");
      const std::string words = cut == std::string::npos ? recorded : recorded.substr(cut + 3);
      CHECK_MESSAGE(std::string(error->what()).find(words) != std::string::npos, error->what());
      CHECK(error->where() == "PYTORCH_ALLOC_CONF=" + text);
      continue;
    }
    const AllocatorOptions options = parse_allocator_options(text);
    const auto& expected = row[2];
    const std::int64_t max_split = expected.value("max_split_size", std::int64_t{-1});
    CHECK(options.max_split_size == (max_split < 0 ? AllocatorOptions::unlimited : max_split));
    CHECK(options.garbage_collection_threshold == expected.value("garbage_collection_threshold", 0.0));
    if (expected.contains("expandable_segments")) {
      CHECK(options.expandable_segments == expected["expandable_segments"].get<bool>());
    }
    for (std::size_t i = 0; i < 16; ++i) {
      const std::int64_t divisions = expected.contains("roundup_power2_divisions")
                                         ? expected["roundup_power2_divisions"][i].get<std::int64_t>()
                                         : 0;
      CHECK(options.roundup_power2_divisions[i] == divisions);
    }
  }
}

TEST_CASE("from the environment CUDA's parser comes first") {
  // It skips the lists it does not own, and misses the end of this one; set at run time, the other parser would find
  // it.
  CHECK(std::string(refusal("roundup_power2_divisions:[256:1")->what()).find("Expected closing bracket ']'") !=
        std::string::npos);
  CHECK(std::string(refusal("max_split_size_mb:1,foo:1")->what()).find("Unrecognized key 'foo'") != std::string::npos);
}

TEST_CASE("values arrive") {
  const AllocatorOptions options = parse_allocator_options(
      "large_segment_size_mb:40,max_split_size_mb:64,per_process_memory_fraction:0.25,backend:cudaMallocAsync");
  CHECK(options.large_segment_size == 40 * MiB);
  CHECK(options.max_non_split_rounding == 40 * MiB);  // follows the segment size
  CHECK(options.max_split_size == 64 * MiB);
  CHECK(options.per_process_memory_fraction == 0.25);
  CHECK(options.backend == AllocatorBackend::cuda_malloc_async);
  CHECK(options.segment_size(2 * MiB) == 40 * MiB);
}

TEST_CASE("each key from its version on") {
  CHECK(refusal("throw_on_cudamalloc_oom:True", {2, 11}));
  CHECK(!refusal("throw_on_cudamalloc_oom:True", {2, 12}));
  CHECK(refusal("pinned_max_cached_size_mb:8", {2, 12}));
  CHECK(!refusal("pinned_max_cached_size_mb:8", {2, 13}));
  CHECK(refusal("expandable_segments_reserve:0.5", {2, 13}));
  CHECK(!refusal("expandable_segments_reserve:0.5,expandable_segments_reserve_by_class:[a:1,b:40G]", {2, 14}));
  CHECK(refusal("large_segment_size_mb:40", {2, 9}));
  CHECK(refusal("throw_on_cudamalloc_oom:True")->hint().find("2.12") != std::string::npos);
}

TEST_CASE("up to 2.8 separators are checked") {
  CHECK(!refusal("max_split_size_mb:64:expandable_segments:True", {2, 9}));
  const auto error = refusal("max_split_size_mb:64:expandable_segments:True", {2, 8});
  REQUIRE(error);
  CHECK(std::string(error->what()).find("Error parsing CachingAllocator settings, expected ,") != std::string::npos);
  CHECK(std::string(refusal("foo:1", {2, 8})->what()).find("Unrecognized CachingAllocator option: foo") !=
        std::string::npos);
}

TEST_CASE("a near miss is named") {
  CHECK(refusal("expandable_segment:True")->hint() == "did you mean expandable_segments?");
}

TEST_CASE("versions of torch") {
  CHECK(parse_torch_version("2.11.0+cu130") == TorchVersion{2, 11});
  CHECK(parse_torch_version("2.13") == TorchVersion{2, 13});
  CHECK(parse_torch_version("2.15rc1") == TorchVersion{2, 15});
  for (const char* bad : {"", "2", "two.eleven", "2.", "-1.3", "2.1234567890123"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_torch_version(bad), Error);
  }
}

}  // namespace
}  // namespace headroom
