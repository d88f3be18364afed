// Tied weights, told from the bytes of real exports (make_cases): an inference export stores a tied matrix twice, once
// transposed, or merges it.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/recover/cases.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr std::int64_t vocabulary = 96, width = 32;

Program speaker(const std::string& name) {
  Bindings bindings;
  bindings.batch = 2;
  bindings.sequence = 6;
  return recover(bind(read_model(case_file("ties/" + name)), bindings), {});
}

std::int64_t matrices(const Program& p) {
  return std::count_if(p.parameters.begin(), p.parameters.end(),
                       [](const Parameter& x) { return x.trainable && element_count(x.dims) == vocabulary * width; });
}

bool is_bounded(const Program& p) {
  return std::any_of(p.diagnostics.begin(), p.diagnostics.end(),
                     [](const Diagnostic& d) { return d.bound >= bytes_of(DType::f32, vocabulary * width); });
}

}  // namespace

TEST_CASE("a head that is the embedding counts once, another one of its shape does not") {
  for (const char* exporter : {"dynamo", "ts"})
    for (const char* weights : {"all", "edges"}) {
      const std::string kind = std::string(".") + exporter + "-" + weights;
      CAPTURE(kind);
      CHECK(matrices(speaker("tied" + kind)) == 1);
      CHECK(matrices(speaker("untied" + kind)) == 2);
      CHECK(!is_bounded(speaker("tied" + kind)));
      CHECK(!is_bounded(speaker("untied" + kind)));
    }
}

TEST_CASE("without bytes the doubt is bounded") {
  for (const char* module : {"tied", "untied"}) {
    CAPTURE(module);
    const Program p = speaker(std::string(module) + ".ts-none");
    CHECK((matrices(p) == (std::string_view(module) == "tied" ? 1 : 2) || is_bounded(p)));
  }
}
