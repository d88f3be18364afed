// resize: the same question at another batch size or sequence length.
#pragma once

#include <cstdint>
#include <optional>

#include "estimator/bind/shaped_graph.h"
#include "estimator/program/scenario.h"

namespace headroom {

/// The size that `meaning` (batch or sequence) is bound to; nullopt when the model has no such dimension that can vary.
std::optional<std::int64_t> size_of(const ShapedGraph& graph, DimMeaning meaning);

/// `s`, of which `graph` is bound, at another size: the flag that bound the dimension (--batch, --seq, --dim, --shape)
/// follows.
Scenario resized(Scenario s, const ShapedGraph& graph, DimMeaning meaning, std::int64_t size);

}  // namespace headroom
