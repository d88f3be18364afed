#include "estimator/bind/shaped_graph.h"

namespace headroom {

std::optional<std::int64_t> ShapedValue::integer() const {
  if (!contents || contents->integers.size() != 1) return std::nullopt;
  return contents->integers[0];
}

std::optional<double> ShapedValue::number() const {
  if (!contents) return std::nullopt;
  if (contents->reals.size() == 1) return contents->reals[0];
  if (contents->integers.size() == 1) return static_cast<double>(contents->integers[0]);
  return std::nullopt;
}

}  // namespace headroom
