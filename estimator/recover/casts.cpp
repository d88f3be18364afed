#include "estimator/recover/casts.h"

#include <algorithm>

namespace headroom::recovery {

namespace {

bool contains_ignoring_case(std::string_view text, std::string_view lower_word) {
  // The bit tells the cases of a letter.
  const auto it = std::search(text.begin(), text.end(), lower_word.begin(), lower_word.end(),
                              [](char a, char b) { return (a | 0x20) == b; });
  return it != text.end();
}

}  // namespace

bool is_rotary(std::string_view path, std::string_view class_name) {
  return contains_ignoring_case(path, "rotary") || class_name.ends_with("RotaryEmbedding");
}

bool is_norm(std::string_view path, std::string_view class_name) {
  return contains_ignoring_case(path.substr(path.rfind('.') + 1), "norm") || contains_ignoring_case(class_name, "norm");
}

Arg stream_dtype_for(Recovery& r, DType stored) {
  if (stored != DType::f32 || r.mode.low_precision_file) return stored;
  if (is_rotary(r.path(), r.origins.module_class(r.node()))) return stored;
  if (const auto it = r.made_like.find(r.graph.resolve(r.out())); it != r.made_like.end() && r.has_slot(it->second))
    return DTypeOf{r.tensor(it->second)};
  return stream_dtype(r);
}

Arg stream_dtype(Recovery& r) {
  const SlotId stream = r.parameters.stream();
  return stream.valid() ? Arg(DTypeOf{stream}) : Arg(DType::f32);
}

SlotId call_to(Recovery& r, SlotId x, Arg dtype, std::string name) {
  return r.call("aten::to.dtype", {x, std::move(dtype)}, std::move(name));
}

void plan_casts(Recovery& r) {
  if (r.mode.low_precision_file) return;
  const GraphView& g = r.graph;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto cast = static_cast<NodeIndex>(i);
    if (!g.is(cast, "Cast") || r.origins.group_of(cast)) continue;
    const ValueId x = g.input(cast, 0), y = g.output(cast);
    if (!x.valid() || !is_float(g.value(x).dtype) || g.value(y).dtype != DType::f32) continue;
    if (!is_norm(r.origins.module(cast), r.origins.module_class(cast))) continue;
    // The cast did nothing when the file was made, so value and copy became one: a residual addition outside the norm
    // reads the norm's cast, where eager adds the value itself.
    for (const NodeIndex reader : g.readers(y))
      if (!r.origins.inside(reader, cast)) r.override_operand(reader, y, [&r, x] { return r.tensor(x); });
  }
}

}  // namespace headroom::recovery
