// Metadata that cannot be read costs names, never the answer.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <span>

#include "tests/recover/cases.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Program recovered_without(const std::string& name, std::string_view word) {
  std::ifstream in(case_file(name), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t at = bytes.find(word); at != std::string::npos; at = bytes.find(word, at)) bytes[at + 1] = '?';
  const Model model = read_model(std::as_bytes(std::span(bytes)), {});
  Bindings bindings;
  bindings.batch = 2;
  if (name.starts_with("decoder")) bindings.sequence = 6;
  return recover(bind(model, bindings), {});
}

std::int64_t parameter_count(const Program& p) {
  std::int64_t n = 0;
  for (const Parameter& q : p.parameters)
    if (!q.buffer) n += element_count(q.dims);
  return n;
}

}  // namespace

TEST_CASE("a training export without readable text gives the same parameters") {
  for (const std::string& name : case_names()) {
    if (name.find("dynamo-train") == std::string::npos) continue;
    CAPTURE(name);
    const std::int64_t whole = parameter_count(recovered(name));
    CHECK(parameter_count(recovered_without(name, "call_function")) == whole);
    CHECK(parameter_count(recovered_without(name, "pkg.torch.onnx.fx_node")) == whole);
    CHECK(parameter_count(recovered_without(name, "pkg.torch.onnx.stack_trace")) == whole);
    CHECK(parameter_count(recovered_without(name, "pkg.torch.onnx.name_scopes")) == whole);
  }
}
