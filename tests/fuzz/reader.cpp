// Any bytes as an ONNX file: one Error or a Graph whose every part can be visited, never a crash or a long wait.
#include <cstddef>
#include <cstdint>
#include <span>

#include "estimator/base/error.h"
#include "estimator/read/describe.h"
#include "estimator/read/graph.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  try {
    ReadLimits limits;
    limits.max_nodes_after_inlining = 100'000;
    const Model model = read_model(std::as_bytes(std::span(bytes, size)), "/nonexistent", limits);
    describe(model);
    for (const Initializer& i : model.graph().initializers) weight_bytes(model, i.tensor, 0, 16);
  } catch (const Error&) {
  }
  return 0;
}
