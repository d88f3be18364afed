#include "estimator/recover/frozen_tables.h"

#include <algorithm>
#include <string_view>

namespace headroom::recovery {

namespace {

bool any_named(const GraphView& g, bool (*is)(std::string_view)) {
  return std::ranges::any_of(g.initializers(), [&](const Initializer* i) { return is(g.name(i->value)); });
}

}  // namespace

bool is_sinusoid_table(const GraphView& g, const Origins& origins, ValueId weight) {
  const std::string_view name = g.name(weight);
  if (!name.ends_with("coder.embed_positions.weight") || g.dims(weight).size() != 2) return false;
  // Whisper's encoder, behind its convolutions, and those copied from it; their decoders learn their own.
  if (any_named(g, [](std::string_view n) { return n.ends_with("encoder.conv1.weight"); }))
    return name.ends_with("encoder.embed_positions.weight");
  if (origins.has_text())
    return std::ranges::any_of(g.readers(weight), [&](NodeIndex n) {
      return origins.module_class(n).find("Sinusoidal") != std::string_view::npos;
    });
  // BART's learned tables have two rows more than positions, or a norm behind them; Blenderbot's have 128.
  constexpr std::int64_t multiple = 8, offset = 2, of_blenderbot = 128;
  const std::int64_t rows = g.dims(weight)[0];
  return rows % multiple != offset && rows != of_blenderbot &&
         !any_named(g, [](std::string_view n) { return n.find("layernorm_embedding") != std::string_view::npos; });
}

}  // namespace headroom::recovery
