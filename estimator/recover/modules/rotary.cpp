#include "estimator/recover/modules/rotary.h"

#include <algorithm>
#include <vector>

#include "estimator/recover/casts.h"

namespace headroom::recovery {

void plan_rotary(Recovery& r) {
  if (r.mode.low_precision_file || !r.origins.has_text()) return;
  const GraphView& g = r.graph;
  constexpr std::int8_t not_asked = -1;
  std::vector<std::int8_t> known(r.origins.scope_count(), not_asked);
  const auto in_rotary = [&](NodeIndex n) {
    std::int8_t& of_scope = known[r.origins.scope_number(n)];
    if (of_scope == not_asked) of_scope = is_rotary(r.origins.module(n), r.origins.module_class(n));
    return of_scope != 0;
  };
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!r.origins.group_of(n) || !in_rotary(n)) continue;
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
    if (!std::all_of(readers.begin(), readers.end(), in_rotary)) r.cast_result(y);
  }
}

}  // namespace headroom::recovery
