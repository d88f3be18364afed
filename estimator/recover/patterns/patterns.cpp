#include "estimator/recover/patterns/patterns.h"

#include <unordered_map>

namespace headroom::recovery {

namespace {

const std::unordered_multimap<std::string_view, void (*)(Recovery&, NodeIndex)>& by_operator() {
  static const auto table = [] {
    std::unordered_multimap<std::string_view, void (*)(Recovery&, NodeIndex)> out;
    for (const PatternFamily family :
         {linear_patterns(), activation_patterns(), attention_patterns(), normalization_patterns(), shape_patterns(),
          random_patterns(), batch_norm_patterns(), recurrent_patterns(), embedding_bag_patterns(), loss_patterns(),
          slice_assignment_patterns()})
      for (const Pattern& p : family) out.emplace(p.op_type, p.find);
    return out;
  }();
  return table;
}

}  // namespace

void plan_patterns(Recovery& r) {
  const auto& patterns = by_operator();
  for (std::size_t i = 0; i < r.graph.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!r.is_free(n)) continue;
    const auto [first, last] = patterns.equal_range(r.graph.op(n));
    for (auto it = first; it != last; ++it) it->second(r, n);
  }
}

}  // namespace headroom::recovery
