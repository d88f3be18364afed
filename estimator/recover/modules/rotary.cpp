#include "estimator/recover/modules/rotary.h"

#include <algorithm>

#include "estimator/recover/casts.h"

namespace headroom::recovery {

void plan_rotary(Recovery& r) {
  if (r.mode.low_precision_file || !r.origins.has_text()) return;
  const GraphView& g = r.graph;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!r.origins.group_of(n) || !is_rotary(r.origins.module(n), r.origins.module_class(n))) continue;
    const ValueId y = g.output(n);
    if (!y.valid() || !is_float(g.value(y).dtype) || r.is_host(y)) continue;
    // inv_freq[None, :, None].float(): the module's cast may have made the buffer low.
    if (!g.is(n, "Unsqueeze"))
      for (const ValueId x : g.inputs(n)) {
        ValueId stored = x;
        while (g.is(g.producer(stored), "Unsqueeze")) stored = g.input(g.producer(stored), 0);
        if (!stored.valid() || !g.initializer(stored) || r.is_host(stored) || !g.is_weight(stored)) continue;
        r.override_operand(
            n, x, [&r, x] { return call_to(r, r.tensor(x), DType::f32, std::string(r.graph.name(x)) + ".float"); });
        r.set_wide(y);
      }
    const auto readers = g.readers(y);
    const bool leaves = std::any_of(readers.begin(), readers.end(), [&](NodeIndex reader) {
      return !is_rotary(r.origins.module(reader), r.origins.module_class(reader));
    });
    if (leaves) r.cast_result(y);
  }
}

}  // namespace headroom::recovery
