// Cast and CastLike.
#include <algorithm>
#include <array>

#include "estimator/recover/casts.h"
#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

/// Norm arithmetic or a rotary embedding in the cast's own module reads it: `.float()`, not `.to(x.dtype)`.
bool goes_up(Recovery& r) {
  if (is_rotary(r.path(), r.origins.module_class(r.node()))) return true;
  for (const NodeIndex reader : r.graph.readers(r.out())) {
    if (!r.origins.inside(reader, r.node())) continue;
    if (r.graph.is(reader, "Pow") || r.graph.is(reader, "ReduceMean")) return true;
  }
  return false;
}

/// Integers that become integers again after arithmetic: `.float()`, not `.to(x.dtype)`.
bool becomes_integer_again(const GraphView& g, NodeIndex cast) {
  constexpr int longest = 8;
  NodeIndex n = cast;
  for (int step = 0; step < longest && n != no_node; ++step) {
    n = g.only_reader(g.output(n));
    if (n == no_node || !g.output(n).valid()) return false;
    if (g.is(n, "Cast") && is_integer(g.value(g.output(n)).dtype)) return true;
  }
  return false;
}

void cast(Recovery& r) {
  const DType from = r.dtype(r.in(0)), to = r.dtype(r.out());
  const std::string name(r.graph.name(r.out()));
  if (from == to && to != DType::f32) return r.alias(r.out(), r.in(0));
  if (r.mode.low_precision_file || to != DType::f32) return r.define(r.out(), call_to(r, r.tensor(0), to, name));
  if (!is_float(from)) {
    const Arg dtype = becomes_integer_again(r.graph, r.node()) ? Arg(to) : stream_dtype_for(r, to);
    r.define(r.out(), call_to(r, r.tensor(0), dtype, name));
    if (std::holds_alternative<DType>(dtype)) r.set_wide(r.out());
    return;
  }
  if (from != DType::f32) return r.define(r.out(), call_to(r, r.tensor(0), to, name));

  // Float to float in a float32 file: in half precision it means up, down or nothing.
  const NodeIndex producer = r.graph.producer(r.in(0));
  if (r.is_wide(r.in(0))) {
    r.define(r.out(), call_to(r, r.tensor(0), stream_dtype(r), name));
  } else if (r.graph.is(producer, "Softmax") && r.graph.only_reader(r.in(0)) == r.node() &&
             r.graph.is(r.graph.only_reader(r.out()), "Cast")) {
    // F.softmax(x, dim, dtype=torch.float32).to(x.dtype): one kernel, then a cast. A single cast is `.to(v.dtype)`.
    r.emit("aten::softmax.int",
           {r.tensor(r.graph.input(producer, 0)), r.graph.node(producer).integer("axis", -1), DType::f32});
    r.set_wide(r.out());
  } else if (goes_up(r)) {
    r.define(r.out(), call_to(r, r.tensor(0), DType::f32, name));
    r.set_wide(r.out());
  } else {
    r.alias(r.out(), r.in(0));
  }
}

void cast_like(Recovery& r) {
  if (is_float(r.dtype(r.in(0))) && is_float(r.dtype(r.in(1)))) return r.alias(r.out(), r.in(0));
  if (r.has_slot(r.in(1))) {
    r.define(r.out(), call_to(r, r.tensor(0), DTypeOf{r.tensor(1)}, std::string(r.graph.name(r.out()))));
  } else {
    r.define(r.out(), call_to(r, r.tensor(0), r.dtype(r.out()), std::string(r.graph.name(r.out()))));
  }
}

constexpr std::array list{
    OperatorHandler{"Cast", cast},
    OperatorHandler{"CastLike", cast_like},
};

}  // namespace

OperatorFamily cast_operators() { return list; }

}  // namespace headroom::recovery
