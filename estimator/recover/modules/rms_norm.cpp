#include "estimator/recover/modules/rms_norm.h"

#include <memory>

#include "estimator/recover/casts.h"

namespace headroom::recovery {

namespace {

NodeIndex reader_of(const GraphView& g, NodeIndex n, std::string_view op) {
  if (n == no_node) return no_node;
  for (const NodeIndex reader : g.readers(g.output(n)))
    if (g.is(reader, op)) return reader;
  return no_node;
}

struct RmsNorm {
  NodeIndex square = no_node;
  NodeIndex scaled = no_node;  ///< the product (or quotient) of x with the root
  ValueId x;
  NodeIndex weighted = no_node;  ///< product with the weight
  ValueId weight;
  bool cast_before_weight = false;
};

std::optional<RmsNorm> rms_norm_at(const GraphView& g, NodeIndex square) {
  if (g.number(g.input(square, 1)) != 2.0) return std::nullopt;
  RmsNorm out;
  out.square = square;
  out.x = g.input(square, 0);
  const NodeIndex root = reader_of(g, reader_of(g, reader_of(g, square, "ReduceMean"), "Add"), "Sqrt");
  if (root == no_node) return std::nullopt;
  for (const NodeIndex reader : g.readers(g.output(root))) {
    if (g.is(reader, "Div") && g.input(reader, 0) == out.x) out.scaled = reader;
    if (g.is(reader, "Reciprocal") || g.is(reader, "Div"))
      for (const NodeIndex mul : g.readers(g.output(reader)))
        if (g.is(mul, "Mul") && g.reads(mul, out.x)) out.scaled = mul;
  }
  if (out.scaled == no_node) return std::nullopt;
  NodeIndex next = g.only_reader(g.output(out.scaled));
  ValueId normal = g.output(out.scaled);
  if (g.is(next, "Cast")) {
    out.cast_before_weight = true;
    normal = g.output(next);
    next = g.only_reader(normal);
  }
  if (g.is(next, "Mul") && g.is_weight(g.other_input(next, normal), 1)) {
    out.weighted = next;
    out.weight = g.other_input(next, normal);
  }
  return out;
}

/// Whether the module's code computes in float32: known of transformers' classes, else read from its lines.
bool computes_in_float(const Recovery& r, const RmsNorm& norm) {
  const std::string_view class_name = r.origins.module_class(norm.square);
  if (class_name.starts_with("transformers.") || class_name.starts_with("diffusers.")) return true;
  if (r.origins.called_from(norm.square, ".float()") || r.origins.called_from(norm.square, "torch.float32"))
    return true;
  // `self.weight * x.to(dtype)`: going back means having gone up.
  if (norm.weighted == no_node) return false;
  const std::string_view line = r.origins.source_line(norm.weighted);
  return line.find(".to(") != std::string_view::npos || line.find(".type_as(") != std::string_view::npos;
}

void plan_from_text(Recovery& r, const RmsNorm& norm) {
  if (!computes_in_float(r, norm)) return;
  // x.to(float32).pow(2) casts for the square alone (T5); x = x.to(float32) on a line before serves the product too.
  const bool square_only = r.origins.source_line(norm.square).find("torch.float32).pow") != std::string_view::npos;
  const auto wide = std::make_shared<SlotId>();
  r.override_operand(norm.square, norm.x, [&r, norm, wide] {
    *wide = call_to(r, r.tensor(norm.x), DType::f32, std::string(r.graph.name(norm.x)) + ".float");
    r.set_wide(r.graph.output(norm.square));
    return *wide;
  });
  if (!square_only)
    r.override_operand(norm.scaled, norm.x, [&r, norm, wide] { return wide->valid() ? *wide : r.tensor(norm.x); });
  const ValueId normal = r.graph.output(norm.scaled);
  if (norm.weighted == no_node) return;
  r.override_operand(norm.weighted, normal, [&r, norm, normal] {
    return call_to(r, r.tensor(normal), DTypeOf{r.tensor(norm.x)}, std::string(r.graph.name(normal)) + ".back");
  });
  r.set_narrow(norm.weighted);
}

/// Without a cast before the weight it was conditional (T5): only the square reads the float copy.
void plan_from_casts(Recovery& r, const RmsNorm& norm) {
  const NodeIndex cast = r.graph.producer(norm.x);
  if (!r.graph.is(cast, "Cast") || norm.cast_before_weight || norm.weighted == no_node) return;
  const ValueId x = r.graph.input(cast, 0), normal = r.graph.output(norm.scaled);
  r.override_operand(norm.scaled, norm.x, [&r, x] { return r.tensor(x); });
  r.override_operand(norm.weighted, normal, [&r, norm, normal] {
    return call_to(r, r.tensor(normal), DTypeOf{r.tensor(norm.weight)}, std::string(r.graph.name(normal)) + ".back");
  });
  r.set_narrow(norm.weighted);
}

}  // namespace

void plan_rms_norms(Recovery& r) {
  if (r.mode.low_precision_file) return;
  for (std::size_t i = 0; i < r.graph.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!r.graph.is(n, "Pow")) continue;
    const auto norm = rms_norm_at(r.graph, n);
    if (!norm) continue;
    if (r.origins.group_of(n))
      plan_from_text(r, *norm);
    else
      plan_from_casts(r, *norm);
  }
}

}  // namespace headroom::recovery
