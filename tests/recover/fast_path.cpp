// torch.nn's fast path: what inference runs instead of a module's own calls.
#include <doctest/doctest.h>

#include "tests/recover/cases.h"

using namespace headroom;
using namespace headroom::test;

namespace {

std::vector<const Call*> calls_of(const Program& p, std::string_view op) {
  std::vector<const Call*> out;
  for (const Call& c : p.calls)
    if (p.name_of(c.op) == op) out.push_back(&c);
  return out;
}

constexpr std::string_view layer = "aten::_transformer_encoder_layer_fwd",
                           attention = "aten::scaled_dot_product_attention";

}  // namespace

TEST_CASE("a layer of nn.TransformerEncoder is one call in inference, from every export") {
  for (const std::string export_ : {"dynamo-train", "dynamo-eval", "ts-train", "ts-eval"}) {
    CAPTURE(export_);
    const Program p = recovered("encoder." + export_, {.training = false, .fast_path = true});
    const auto layers = calls_of(p, layer);
    REQUIRE(layers.size() == 1);
    const std::vector<Arg>& args = layers[0]->args;
    REQUIRE(args.size() == 18);
    CHECK(std::get<std::int64_t>(args[1]) == 32);
    CHECK(std::get<std::int64_t>(args[2]) == 4);
    CHECK(std::get<bool>(args[7]));  // use_gelu
    CHECK(std::get<bool>(args[8]));  // norm_first
    const auto dims = [&](std::size_t i) {
      const SlotId s = std::get<SlotId>(args[i]);
      for (const Parameter& q : p.parameters)
        if (q.slot == s) return q.dims;
      return Dims{};
    };
    CHECK(dims(3) == Dims{96, 32});
    CHECK(dims(5) == Dims{32, 32});
    CHECK(dims(14) == Dims{64, 32});
    CHECK(dims(16) == Dims{32, 64});
    CHECK(calls_of(p, attention).empty());
  }
}

TEST_CASE("without the fast path the layer's own calls run") {
  for (const bool training : {true, false}) {
    const Program p = recovered("encoder.dynamo-train", {.training = training});
    CHECK(calls_of(p, layer).empty());
    CHECK(calls_of(p, attention).size() == 1);
  }
}
