#include "estimator/recover/text.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "estimator/recover/attention.h"
#include "estimator/recover/batch_norm.h"
#include "estimator/recover/casts.h"
#include "estimator/recover/convolution.h"
#include "estimator/recover/dropout_families.h"
#include "estimator/recover/folded_weight.h"
#include "estimator/recover/fx_call.h"
#include "estimator/recover/modules/t5.h"
#include "estimator/recover/recurrent_text.h"

namespace headroom::recovery {

namespace {

using namespace std::string_view_literals;

bool is_clone(const FxArg& a) { return a.is_reference() && a.text.starts_with("clone"sv); }

bool is_detach(const FxArg& a) { return a.is_reference() && a.text.starts_with("detach"sv); }

bool reads_copy(const FxNode& fx) {
  const auto is_copy = [](const FxArg& a) { return is_clone(a) || is_detach(a); };
  return std::any_of(fx.args.begin(), fx.args.end(), [&](const FxArg& a) {
    return is_copy(a) || std::any_of(a.items.begin(), a.items.end(), is_copy);
  });
}

bool refers_to(const FxArg& a, std::string_view name) {
  return a.is_reference()
             ? a.text == name
             : std::any_of(a.items.begin(), a.items.end(), [&](const FxArg& i) { return refers_to(i, name); });
}

/// Some reader's text names the value itself, not a copy of it.
bool is_named_by_readers(const Recovery& r, ValueId v) {
  const auto readers = r.graph.readers(v);
  return std::any_of(readers.begin(), readers.end(), [&](NodeIndex n) {
    const FxGroup* group = r.origins.group_of(n);
    return !group || std::any_of(group->fx.args.begin(), group->fx.args.end(),
                                 [&](const FxArg& a) { return refers_to(a, r.graph.name(v)); });
  });
}

/// nn.MultiheadAttention drops out the probabilities that it returns as well only where their dropout is not zero:
/// nothing of it is left in the text. It is taken to have one where its layer has.
void restore_in_attention(Recovery& r, std::size_t& places, Bytes& bound) {
  const GraphView& g = r.graph;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!g.is(n, "Softmax") || !r.origins.module_class(n).ends_with("MultiheadAttention")) continue;
    const FxGroup* group = r.origins.group_of(n);
    if (!group || !group->fx.target.starts_with("aten.softmax") || has_no_dropout(r.origins.class_hierarchy(n)))
      continue;
    const ValueId v = g.output(n);
    r.restore_dropout(v, {}, 0);
    bound += bytes_of(DType::f32, g.value(v).count()) + Bytes(g.value(v).count());
    ++places;
  }
}

}  // namespace

void plan_removed_clones(Recovery& r) {
  if (!r.origins.has_text()) return;
  const bool lost_dropouts = !r.mode.exported_training && r.options.training;
  Bytes bound;
  std::size_t places = 0;
  for (const FxGroup& group : r.origins.groups()) {
    // There the clone is reshape's copy, or the one of a packed projection.
    if (group.opaque || group.fx.target.starts_with("aten._unsafe_view") || group.fx.target.starts_with("aten.select"))
      continue;
    if (!reads_copy(group.fx)) continue;
    const auto c = FxCall::resolve(r, group);
    if (!c) continue;
    const auto look = [&](const FxArg& a) {
      if (!(is_clone(a) || is_detach(a)) || !c->was_paired(a.text)) return;
      const ValueId v = c->value(a.text);
      if (is_detach(a)) return r.restore_call(v, "detach", std::string(a.text));
      const NodeIndex maker = r.graph.producer(v), reader = group.last;
      if (r.graph.is(maker, "Transpose") && r.origins.source_line(maker).find(".contiguous(") != std::string_view::npos)
        return r.restore_call(v, "contiguous", is_named_by_readers(r, v) ? std::string(a.text) : std::string());
      // The copy of a norm that F.cosine_similarity bounds.
      if (r.origins.source_line(reader).find("cosine_similarity(") != std::string_view::npos) return;
      // A turned tensor was copied so that it could be viewed; reshape copies it again.
      if (r.graph.is(maker, "Transpose") && group.fx.target.starts_with("aten.view")) return;
      if (maker != no_node &&
          drops_no_activations(r.origins.class_hierarchy(maker), r.graph.node(maker).metadata.stack_trace))
        return;
      // Heads drop out what they classify even in families whose layers do not.
      const bool in_head = r.origins.module(reader).ends_with(".classifier");
      if (!lost_dropouts || maker == no_node ||
          (!in_head &&
           (has_no_dropout(r.origins.class_hierarchy(maker)) || has_no_dropout(r.origins.class_hierarchy(reader)))))
        return;
      const auto inner = r.origins.scopes(maker), outer = r.origins.scopes(reader);
      std::size_t common = 0;
      while (common < inner.size() && common < outer.size() && inner[common] == outer[common]) ++common;
      r.restore_dropout(v, std::string(a.text), static_cast<int>(inner.size() - common));
      bound += bytes_of(DType::f32, r.graph.value(v).count()) + Bytes(r.graph.value(v).count());
      ++places;
    };
    for (const FxArg& a : group.fx.args) {
      look(a);
      for (const FxArg& i : a.items) look(i);
    }
  }
  if (r.restores_dropouts_in_layers()) restore_in_attention(r, places, bound);
  if (places)
    r.diagnose("dropout-assumed", Severity::warning,
               "an inference export holds no dropout; " + std::to_string(places) +
                   " places that its text still names are taken to have probability > 0",
               bound);
}

namespace {

/// What a target becomes. `plan` returns what the call reads, or nullopt to leave the group to its operators.
using Reads = std::optional<std::vector<ValueId>>;
struct TargetRule {
  std::string_view target;  ///< up to the overload: "aten.linear"
  void (*emit)(Recovery&, const FxCall&);
  Reads (*plan)(Recovery&, const FxCall&);
};

/// The first argument. In the file complex numbers are pairs: the optimiser takes their views away.
Arg first_argument(Recovery& r, const FxCall& c, Arg given) {
  const FxArg* x = c.fx().arg(0);
  if (!x || !x->is_reference() || !c.was_paired(x->text)) return given;
  const auto makes_complex = [](std::string_view target) {
    return target.starts_with("aten._fft_r2c") || target.starts_with("aten._fft_c2c") ||
           target.starts_with("aten.view_as_complex");
  };
  const FxGroup* made = r.origins.group_of(r.graph.producer(c.value_of_arg(0)));
  const bool is = made && makes_complex(made->fx.target);
  const bool wanted = c.target().starts_with("aten._fft_c2");
  if (is == wanted) return given;
  return r.call(is ? "aten::view_as_real" : "aten::view_as_complex", {given}, std::string(x->text));
}

void generic(Recovery& r, const FxCall& c) {
  std::string op = "aten::" + std::string(c.target().substr(5));
  if (op.ends_with(".default")) op.resize(op.size() - 8);
  Args args = c.all_args(r);
  if (!args.empty()) args[0] = first_argument(r, c, args[0]);
  r.emit(op, std::move(args), c.result());
}

std::vector<ValueId> reads_of_call(Recovery& r, const FxCall& c) {
  std::vector<ValueId> reads(c.data().begin(), c.data().end());
  const auto add = [&](const FxArg& a) {
    if (!a.is_reference()) return;
    const ValueId v = c.value(a.text);
    if (v.valid() && !r.is_host(v)) reads.push_back(v);
  };
  for (const FxArg& a : c.fx().args) {
    add(a);
    for (const FxArg& i : a.items) add(i);
  }
  for (const FxKeyword& k : c.fx().kwargs) add(k.value);
  return reads;
}

Reads read_all(Recovery& r, const FxCall& c) { return reads_of_call(r, c); }

/// Which of the tensors is indexed and which index, the nodes say better than names that are gone.
Reads read_index(Recovery& r, const FxCall& c) {
  const auto gone = [&](const FxArg& a) {
    return a.is_reference() && (c.was_paired(a.text) || !(c.value(a.text).valid() || a.text.starts_with("b_")));
  };
  const auto& args = c.fx().args;
  if (c.find({"GatherND"}) != no_node && std::any_of(args.begin(), args.end(), [&](const FxArg& a) {
        return gone(a) || std::any_of(a.items.begin(), a.items.end(), gone);
      }))
    return std::nullopt;
  return reads_of_call(r, c);
}

/// Indices that the file holds are tensors, however small.
void index(Recovery& r, const FxCall& c) {
  const FxArg* given = c.fx().arg(1);
  if (!given || !given->is(FxArg::Kind::list)) return generic(r, c);
  Slots indices;
  for (const FxArg& item : given->items) {
    const ValueId v = item.is_reference() ? c.value(item.text) : ValueId{};
    const Arg one = v.valid() ? Arg(r.tensor(v)) : c.convert(r, item);
    const auto* slot = std::get_if<SlotId>(&one);
    indices.push_back(slot ? *slot : SlotId{});
  }
  r.emit("aten::index.Tensor", {c.tensor(r, 0), indices}, c.result());
}

/// The exporter flattens indices that the optimiser has left unflattened.
void index_select(Recovery& r, const FxCall& c) {
  Args args = c.all_args(r);
  if (const ValueId v = c.value_of_arg(2); v.valid() && r.dims(v).size() != 1 && args.size() > 2)
    args[2] = r.call("aten::reshape", {args[2], Dims{-1}}, std::string(r.graph.name(c.result())) + ".index");
  r.emit("aten::index_select", std::move(args), c.result());
}

// --- layers
// ------------------------------------------------------------------------------------------------------------

/// Without a product the optimiser computed it, of a buffer and the weight; an addition is left.
Reads read_linear(Recovery& r, const FxCall& c) {
  if (c.find({"MatMul", "Gemm"}) == no_node) return std::nullopt;
  return reads_of_call(r, c);
}
void linear(Recovery& r, const FxCall& c) {
  ValueId x = c.value_of_arg(0);
  if (!x.valid() && !c.data().empty()) x = c.data()[0];
  if (!x.valid())  // a buffer is projected (a table of coordinates)
    if (const NodeIndex product = c.find({"MatMul", "Gemm"}); product != no_node) x = r.graph.input(product, 0);
  const Dims in = x.valid() ? r.dims(x) : Dims{};
  const Dims& out = r.dims(c.result());
  const std::int64_t columns = in.empty() ? 1 : in.back(), rows = out.empty() ? 1 : out.back();
  const ValueId folded = c.value_of_arg(1);
  const Arg weight = is_folded_weight(r, folded) ? Arg(folded_weight(r, folded)) : c.parameter(r, 1, {rows, columns});
  const SlotId input = cast_before_linear(r, c.tensor(r, 0), weight);
  r.emit("aten::linear", {input, weight, c.parameter(r, 2, {rows})}, c.result());
}

/// x @ weight.T, of which the optimiser made a constant, is a linear layer without a bias.
void matmul(Recovery& r, const FxCall& c) {
  const ValueId weight = c.value_of_arg(1);
  if (!is_turned_weight(r, weight)) return generic(r, c);
  r.emit("aten::linear", {c.tensor(r, 0), folded_weight(r, weight)}, c.result());
}

void addmm(Recovery& r, const FxCall& c) {
  const Dims& out = r.dims(c.result());
  const ValueId x = c.data().empty() ? ValueId{} : c.data()[0];
  const std::int64_t columns = out.back(), inner = x.valid() ? r.dims(x).back() : 1;
  r.emit("aten::addmm", {c.parameter(r, 0, {columns}), c.tensor(r, 1), c.parameter(r, 2, {inner, columns})},
         c.result());
}

void layer_norm(Recovery& r, const FxCall& c) {
  const Arg shape = c.arg(r, 1);
  const Dims dims = std::holds_alternative<Dims>(shape) ? std::get<Dims>(shape) : Dims{};
  r.emit("aten::layer_norm", {c.tensor(r, 0), dims, c.parameter(r, 2, dims), c.parameter(r, 3, dims), c.real(4, 1e-5)},
         c.result());
}

void rms_norm(Recovery& r, const FxCall& c) {
  const Arg shape = c.arg(r, 1);
  const Dims dims = std::holds_alternative<Dims>(shape) ? std::get<Dims>(shape) : Dims{};
  const Arg epsilon = c.fx().arg(3) ? c.arg(r, 3) : Arg(None{});
  r.emit("aten::rms_norm", {c.tensor(r, 0), dims, c.parameter(r, 2, dims), epsilon}, c.result());
}

void prelu(Recovery& r, const FxCall& c) {
  const ValueId slope = r.graph.input(c.group().last, 1);
  const std::int64_t count = slope.valid() ? r.graph.value(slope).count() : 1;
  r.emit("aten::prelu", {c.tensor(r, 0), c.has_parameter(1) ? c.parameter(r, 1, {count}) : c.arg(r, 1)}, c.result());
}

void group_norm_with(Recovery& r, const FxCall& c, std::size_t weight, std::int64_t groups, double epsilon) {
  const Dims channels{r.dims(c.result())[1]};
  r.emit(
      "aten::group_norm",
      {c.tensor(r, 0), groups, c.parameter(r, weight, channels), c.parameter(r, weight + 1, channels), epsilon, true},
      c.result());
}
void group_norm(Recovery& r, const FxCall& c) { group_norm_with(r, c, 2, c.integer(1, 1), c.real(4, 1e-5)); }
void native_group_norm(Recovery& r, const FxCall& c) { group_norm_with(r, c, 1, c.integer(6, 1), c.real(7, 1e-5)); }

void instance_norm(Recovery& r, const FxCall& c) {
  const Dims channels{r.dims(c.result())[1]};
  Args args{c.tensor(r, 0)};
  for (std::size_t i = 1; i < 5; ++i) args.push_back(c.parameter(r, i, channels));
  args.insert(args.end(), {c.integer(5, 1) != 0, c.real(6, 0.1), c.real(7, 1e-5), true});
  r.emit("aten::instance_norm", std::move(args), c.result());
}

Reads plan_embedding(Recovery& r, const FxCall& c) {
  const NodeIndex gather = c.find({"Gather"});
  if (gather == no_node) return std::nullopt;
  return std::vector<ValueId>{r.graph.input(gather, 1)};
}
void embedding(Recovery& r, const FxCall& c) {
  const NodeIndex gather = c.find({"Gather"});
  const ValueId table = r.graph.input(gather, 0);
  const Arg weight = c.parameter(r, 0, r.dims(table));
  if (const auto* s = std::get_if<SlotId>(&weight); s && r.parameters.is_parameter(*s) && !r.path().empty()) {
    // The exporter keeps one name of a tied weight, the last; named_parameters() meets the embedding's first.
    const std::string own = std::string(r.path()) + ".weight";
    const bool of_embedding = r.origins.module_class(r.node()).ends_with("Embedding");
    const std::string& name = r.parameters.at(*s).name;
    if (of_embedding && name != own && !r.parameters.is_tied(*s) && r.graph.initializer(table))
      r.parameters.tie(*s, own);
  }
  r.emit("aten::embedding", {weight, r.tensor(r.graph.input(gather, 1)), c.integer(2, -1)}, c.result());
}

/// Running statistics that an earlier call of the module has updated are still the module's.
ValueId updated_statistics(const Recovery& r, NodeIndex norm, std::size_t i) {
  ValueId v = r.graph.input(norm, i);
  if (!r.graph.is(r.graph.producer(v), "Identity")) return {};
  while (r.graph.is(r.graph.producer(v), "Identity")) v = r.graph.input(r.graph.producer(v), 0);
  return r.graph.initializer(v) ? v : ValueId{};
}

Reads plan_batch_norm(Recovery& r, const FxCall& c) {
  const NodeIndex n = c.find({"Conv", "ConvTranspose", "BatchNormalization"});
  if (n == no_node) return std::nullopt;
  for (const std::size_t i : {std::size_t{3}, std::size_t{4}})
    if (!c.has_parameter(i) && !updated_statistics(r, n, i).valid()) return std::nullopt;
  return std::vector<ValueId>{r.graph.input(n, 0)};
}
void batch_norm(Recovery& r, const FxCall& c) {
  const NodeIndex n = c.find({"Conv", "ConvTranspose", "BatchNormalization"});
  const bool folded = !r.graph.is(n, "BatchNormalization");
  SlotId x = r.tensor(r.graph.input(n, 0));
  const std::int64_t channels = folded ? output_channels(r.graph, n) : r.dims(r.graph.input(n, 1))[0];
  if (folded) {
    // The fold replaced the convolution's bias, or made one: only a bias of its own name is the module's.
    const ValueId bias = r.graph.input(n, 2);
    const std::string_view name = r.graph.name(bias);
    const bool own = bias.valid() && !name.ends_with("weight_bias") && name.find('.') != std::string_view::npos;
    x = call_convolution(r, n, x, r.tensor(r.graph.input(n, 1)), own ? Arg(r.tensor(bias)) : Arg(None{}),
                         std::string(r.graph.name(c.result())) + ".conv");
    r.last_is_statement(r.onnx().name);
  }
  const auto slot = [&](std::size_t i) {
    if (const ValueId v = i > 2 ? updated_statistics(r, n, i) : ValueId{}; v.valid()) return r.tensor(v);
    const Arg a = c.parameter(r, i, {channels});
    const auto* s = std::get_if<SlotId>(&a);
    return s ? *s : SlotId{};
  };
  BatchNormOperands o{slot(1), slot(2), slot(3), slot(4)};
  const bool no_training = c.target().find("no_training") != std::string_view::npos;
  o.momentum = c.real(no_training ? 5 : 6, 0.1);
  o.epsilon = c.real(no_training ? 6 : 7, 1e-5);
  const SlotId y = call_batch_norm(r, x, o, std::string(r.graph.name(c.result())));
  r.define(c.result(), y);
}

Reads plan_convolution(Recovery& r, const FxCall& c) {
  const NodeIndex n = c.find({"Conv", "ConvTranspose"});
  if (n == no_node) return std::nullopt;
  std::vector<ValueId> reads{r.graph.input(n, 0)};
  if (!c.has_parameter(1)) reads.push_back(r.graph.input(n, 1));
  return reads;
}
void convolution(Recovery& r, const FxCall& c) {
  const NodeIndex n = c.find({"Conv", "ConvTranspose"});
  const ValueId stored = r.graph.input(n, 1);
  const Arg given = c.has_parameter(1)            ? c.parameter(r, 1, r.dims(stored))
                    : is_folded_weight(r, stored) ? Arg(folded_weight(r, stored))
                                                  : Arg(r.tensor(stored));
  const auto* weight = std::get_if<SlotId>(&given);
  const Arg bias = c.parameter(r, 2, {output_channels(r.graph, n)});
  const FxArg* read = c.fx().arg(0);
  const SlotId restored = read && read->is_reference() ? r.slot_named(read->text) : SlotId{};
  const SlotId y =
      call_convolution(r, n, restored.valid() ? restored : r.tensor(r.graph.input(n, 0)),
                       weight ? *weight : r.tensor(r.graph.input(n, 1)),
                       std::holds_alternative<Unset>(bias) ? Arg(None{}) : bias, std::string(r.graph.name(c.result())));
  r.define(c.result(), y);
}

// --- attention
// -----------------------------------------------------------------------------------------------------------

ValueId attention_mask_of(Recovery& r, const FxCall& c, NodeIndex scores) {
  if (!c.fx().arg(3) || !c.fx().arg(3)->is_reference()) return {};
  if (const ValueId v = c.value_of_arg(3); v.valid() && !c.was_paired(c.fx().args[3].text)) {
    // Where(mask, 0, -inf) inside the group is the attention's own conversion; the text names what was passed.
    return v;
  }
  if (scores == no_node) return {};
  const auto product = score_product(r.graph, scores);
  return product ? product->mask : ValueId{};
}

std::optional<Attention> attention_of(Recovery& r, const FxCall& c) {
  Attention a;
  const NodeIndex softmax = c.find({"Softmax"});
  const auto product = softmax == no_node ? std::nullopt : score_product(r.graph, softmax);
  a.query = c.value_of_arg(0);
  a.key = c.value_of_arg(1);
  a.value = c.value_of_arg(2);
  const bool paired =
      std::any_of(c.fx().args.begin(), c.fx().args.begin() + 3, [&](const FxArg& x) { return c.was_paired(x.text); });
  if (product && (!a.query.valid() || !a.key.valid() || !a.value.valid() || paired)) {
    a.query = product->query;
    a.key = product->key;
    a.key_is_transposed = product->key_is_transposed;
    a.key_order = product->key_order;
    NodeIndex last = c.group().last;
    if (r.graph.is(last, "MatMul")) a.value = r.graph.input(last, 1);
  }
  if (!a.query.valid() || !a.key.valid() || !a.value.valid()) return std::nullopt;
  a.dropout = c.real(4, 0);
  if (const FxArg* p = c.fx().keyword("dropout_p"); p && p->is(FxArg::Kind::real)) a.dropout = p->real;
  a.causal = c.integer(5, 0) != 0;
  if (const FxArg* k = c.fx().keyword("is_causal")) a.causal = k->integer != 0;
  if (const FxArg* s = c.fx().keyword("scale"))
    a.scale = s->is(FxArg::Kind::integer) ? static_cast<double>(s->integer) : s->real;
  if (const FxArg* g = c.fx().keyword("enable_gqa")) a.grouped = g->integer != 0;
  a.mask = mask_argument(r, attention_mask_of(r, c, softmax));
  // transformers repeats keys and values only where it has a mask; other modules do as their text says.
  if (r.origins.class_hierarchy(c.group().last).find("transformers.") != std::string_view::npos || a.mask.mask.valid())
    find_grouped_heads(r, a);
  if (r.restores_dropouts_in_layers() && a.dropout == 0 && !drops_no_weights(r.origins.class_hierarchy(c.group().last)))
    a.dropout = 0.1;
  return a;
}

// --- shapes and copies
// ---------------------------------------------------------------------------------------------------

void view(Recovery& r, const FxCall& c) {
  // A view of a value that the optimiser took away may need the copy that reshape makes, and so may the view that
  // reshape came to on the exporter's device: attention's result lies otherwise there.
  const FxArg* x = c.fx().arg(0);
  const bool paired = x && x->is_reference() && c.was_paired(x->text);
  const std::string_view line = r.origins.source_line(r.node());
  const bool called_view = !line.empty() && line.find("reshape(") == std::string_view::npos &&
                           line.find("flatten(") == std::string_view::npos;
  const ValueId source = c.value_of_arg(0);
  const bool turned = source.valid() && r.graph.producer_op(source) == "Transpose";
  const bool exact = c.target().starts_with("aten.view") && !paired && called_view && !turned;
  r.emit(exact ? "aten::view" : "aten::reshape", {c.tensor(r, 0), r.dims(c.result())}, c.result());
}

void expand(Recovery& r, const FxCall& c) { r.emit("aten::expand", {c.tensor(r, 0), r.dims(c.result())}, c.result()); }

void clone(Recovery& r, const FxCall& c) {
  const FxArg* format = c.fx().keyword("memory_format");
  if (format && format->text.ends_with("contiguous_format")) {
    r.emit("aten::contiguous", {c.tensor(r, 0)}, c.result());
  } else if (r.origins.source_line(r.node()).find(".clone(") != std::string_view::npos) {
    r.emit("aten::clone", {c.tensor(r, 0)}, c.result());
  } else {
    r.define(c.result(), c.tensor(r, 0));  // F.dropout with p = 0 or in eval mode returns its input
  }
}

void identity(Recovery& r, const FxCall& c) { r.define(c.result(), c.tensor(r, 0)); }

void slice(Recovery& r, const FxCall& c) {
  const NodeIndex node = c.find({"Slice"});
  const ValueId x = c.value_of_arg(0).valid() ? c.value_of_arg(0)
                    : node != no_node         ? r.graph.input(node, 0)
                                              : c.result();
  const Dims& in = r.dims(x);
  const Dims& out = r.dims(c.result());
  std::int64_t axis = c.integer(1, 0);
  if (axis < 0) axis += static_cast<std::int64_t>(in.size());
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t step = c.integer(4, 1), size = at < in.size() ? in[at] : 1;
  std::int64_t start = 0;
  if (const Arg a = c.arg(r, 2); std::holds_alternative<std::int64_t>(a)) start = std::get<std::int64_t>(a);
  if (start < 0) start = std::max<std::int64_t>(0, start + size);
  const std::int64_t end = std::min(size, start + (at < out.size() ? out[at] : 1) * step);
  // x[:] is x itself: Python makes no view of it.
  if (start == 0 && end == size && step == 1) return r.define(c.result(), c.tensor(r, 0));
  r.emit("aten::slice.Tensor", {first_argument(r, c, c.tensor(r, 0)), axis, start, end, step}, c.result());
}

/// What is written into a slice: patterns/slice_assignment writes it.
Reads read_source(Recovery&, const FxCall& c) {
  const ValueId source = c.value_of_arg(1);
  return source.valid() ? Reads({source}) : std::nullopt;
}
void copy(Recovery& r, const FxCall& c) { r.define(c.result(), r.tensor(c.value_of_arg(1))); }

/// nn.MultiheadAttention copies its packed projection (`contiguous`) before it selects q, k and v; an optimised export
/// keeps the copy's name in the text of the selects only.
void squeeze(Recovery& r, const FxCall& c) {
  const std::string op =
      c.target().ends_with(".default") ? "aten::squeeze" : "aten::" + std::string(c.target().substr(5));
  int selects = 0;
  for (const NodeIndex reader : r.graph.readers(c.result())) {
    const FxGroup* g = r.origins.group_of(reader);
    const FxArg* x = g && g->fx.target.starts_with("aten.select") ? g->fx.arg(0) : nullptr;
    selects += x && x->is_reference() && x->text.starts_with("clone");
  }
  if ((selects != 2 && selects != 3) || r.dims(c.result())[0] != selects)
    return (void)r.emit(op, c.all_args(r), c.result());
  const SlotId view = r.call(op, c.all_args(r), std::string(r.graph.name(c.result())) + ".view");
  r.emit("aten::contiguous", {view}, c.result());
}

void to(Recovery& r, const FxCall& c) {
  Arg dtype = c.fx().arg(1) ? c.arg(r, 1) : Arg(Unset{});
  if (const FxArg* k = c.fx().keyword("dtype")) dtype = c.convert(r, *k);
  if (!std::holds_alternative<DType>(dtype)) return r.define(c.result(), c.tensor(r, 0));
  const std::string name(r.graph.name(c.result()));
  // A mask is made for the values that it meets: mask.to(x.dtype).
  if (const ValueId x = c.value_of_arg(0); x.valid() && r.dtype(x) == DType::b8)
    dtype = stream_dtype_for(r, std::get<DType>(dtype));
  const bool up = std::holds_alternative<DType>(dtype) && std::get<DType>(dtype) == DType::f32;
  r.define(c.result(), call_to(r, c.tensor(r, 0), dtype, name));
  if (up) r.set_wide(c.result());
}

void mean(Recovery& r, const FxCall& c) {
  const std::size_t rank = r.dims(c.result()).size();
  if (r.origins.module_class(r.node()).find("AdaptiveAvgPool") != std::string_view::npos && rank >= 3) {
    r.emit("aten::adaptive_avg_pool" + std::to_string(rank - 2) + "d", {c.tensor(r, 0), Dims(rank - 2, 1)}, c.result());
  } else {
    r.emit(c.target().ends_with(".dim") ? "aten::mean.dim" : "aten::mean", c.all_args(r), c.result());
  }
}

/// An adaptive pool to one element is written as the largest of all.
void amax(Recovery& r, const FxCall& c) {
  const bool pool = r.origins.source_line(r.node()).find("adaptive_max_pool") != std::string_view::npos ||
                    r.origins.module_class(r.node()).find("AdaptiveMaxPool") != std::string_view::npos;
  if (pool && r.dims(c.result()).size() == 4)
    return (void)r.emit("aten::adaptive_max_pool2d", {c.tensor(r, 0), Dims{1, 1}}, c.result());
  generic(r, c);
}

void as_strided(Recovery& r, const FxCall& c) {
  if (r.origins.module_class(r.node()).find("AdaptiveAvgPool") != std::string_view::npos) return identity(r, c);
  r.emit("aten::as_strided", c.all_args(r), c.result());
}

// --- random
// --------------------------------------------------------------------------------------------------------------

void native_dropout(Recovery& r, const FxCall& c) {
  r.emit("aten::dropout", {c.tensor(r, 0), c.real(1, 0.5), r.options.training}, c.result());
}

void empty(Recovery& r, const FxCall& c) {
  r.emit("aten::empty.memory_format", {r.dims(c.result()), stream_dtype_for(r, r.dtype(c.result()))}, c.result());
}
void random(Recovery& r, const FxCall& c) {
  const std::string_view op = c.target().starts_with("aten.randn") ? "aten::randn" : "aten::rand";
  r.emit(op, {r.dims(c.result()), stream_dtype_for(r, r.dtype(c.result()))}, c.result());
}

/// noise.bernoulli_(p): the export made a new tensor of it.
void bernoulli(Recovery& r, const FxCall& c) {
  const FxArg* x = c.fx().arg(0);
  const FxGroup* made = x && x->is_reference() ? r.origins.group_named(x->text) : nullptr;
  const bool noise =
      made && (made->fx.target.starts_with("aten.empty") || made->fx.target.starts_with("aten.new_empty"));
  if (noise) {
    r.emit("aten::bernoulli_.float", {c.tensor(r, 0), c.real(1, 0.5)}, c.result());
  } else {
    r.emit("aten::bernoulli.p", {c.tensor(r, 0), c.real(1, 0.5)}, c.result());
  }
}

/// noise.div_(p) after it; an ordinary division otherwise.
void div(Recovery& r, const FxCall& c) {
  const FxArg* x = c.fx().arg(0);
  const FxGroup* made = x && x->is_reference() ? r.origins.group_named(x->text) : nullptr;
  const bool noise = made && made->fx.target.starts_with("aten.bernoulli");
  Args args = c.all_args(r);
  if (noise) {
    r.emit("aten::div_.Scalar", std::move(args), c.result());
  } else {
    const std::string op = "aten::" + std::string(c.target().substr(5));
    r.emit(op == "aten::div.Scalar" ? "aten::div.Tensor" : op, std::move(args), c.result());
  }
}

// --- images
// --------------------------------------------------------------------------------------------------------------

void upsample(Recovery& r, const FxCall& c) {
  const Dims& out = r.dims(c.result());
  const Dims size(out.begin() + std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(out.size())), out.end());
  std::string op = "aten::" + std::string(c.target().substr(5, c.target().rfind('.') - 5));
  Args args{c.tensor(r, 0), size};
  if (op.find("nearest") == std::string::npos) args.push_back(c.integer(2, 0) != 0);
  r.emit(op, std::move(args), c.result());
}

void max_pool(Recovery& r, const FxCall& c) {
  std::string op = "aten::" + std::string(c.target().substr(5, c.target().rfind('.') - 5));
  if (const auto at = op.find("_with_indices"); at != std::string::npos) op.resize(at);
  r.emit(op, c.all_args(r), c.result());
}

void softmax(Recovery& r, const FxCall& c) {
  const bool log = c.target().find("log_softmax") != std::string_view::npos;
  const bool half_to_float = c.target().starts_with("aten._") && c.integer(2, 0) != 0;
  Args args{c.tensor(r, 0), c.integer(1, -1)};
  if (half_to_float) args.push_back(DType::f32);
  if (!c.target().starts_with("aten._"))
    if (const Arg dtype = c.arg(r, 2); std::holds_alternative<DType>(dtype)) args.push_back(dtype);
  r.emit(log ? "aten::log_softmax.int" : "aten::softmax.int", std::move(args), c.result());
}

/// A product inside an nn.Dropout is its in-place form: the noise is drawn there.
bool is_in_place_dropout(Recovery& r, const FxCall& c) {
  return c.target().starts_with("aten.mul") && r.origins.module_class(r.node()).ends_with("Dropout");
}

void elementwise(Recovery& r, const FxCall& c) {
  if (is_in_place_dropout(r, c)) {
    const FxArg* noise = c.fx().arg(1);
    const FxGroup* made = noise && noise->is_reference() ? r.origins.group_named(noise->text) : nullptr;
    const FxArg* keep = made ? made->fx.arg(1) : nullptr;
    const double p = keep && keep->is(FxArg::Kind::real) ? 1.0 - keep->real : 0.5;
    return (void)r.emit("aten::dropout_", {c.tensor(r, 0), p, r.options.training}, c.result());
  }
  // A parameter operand that was merged with an equal one has the dims of what the node reads in its place.
  Args args = c.all_args(r);
  const NodeIndex n = c.group().last;
  for (std::size_t i = 0; i < 2 && i < args.size(); ++i)
    if (c.has_parameter(i) && c.group().nodes.size() == 1 && r.graph.input(n, i).valid())
      args[i] = c.parameter(r, i, r.dims(r.graph.input(n, i)));
  for (std::size_t i = 0; i < 2 && i < args.size(); ++i)
    if (const ValueId v = c.value_of_arg(i); is_folded_scale(r, v)) args[i] = folded_weight(r, v);
  if (!std::holds_alternative<SlotId>(args[0]) && args.size() > 1 && std::holds_alternative<SlotId>(args[1]) &&
      (c.target().starts_with("aten.add") || c.target().starts_with("aten.mul")))
    std::swap(args[0], args[1]);
  // 1 - x: the exporter's type promotion makes a tensor of the number.
  if (c.target().starts_with("aten.sub") && !std::holds_alternative<SlotId>(args[0]) && args.size() > 1 &&
      std::holds_alternative<SlotId>(args[1])) {
    const Arg number = std::holds_alternative<Unset>(args[0]) ? Arg(1.0) : args[0];
    return (void)r.emit("aten::rsub.Scalar", {args[1], number}, c.result());
  }
  if (!std::holds_alternative<SlotId>(args[0])) args[0] = c.tensor(r, 0);
  r.emit("aten::" + std::string(c.target().substr(5)), std::move(args), c.result());
}

/// Tensors made of numbers: float32 in the text of a float32 file is the stream's dtype.
void filled(Recovery& r, const FxCall& c) {
  std::string op = "aten::" + std::string(c.target().substr(5));
  if (op.ends_with(".default")) op.resize(op.size() - 8);
  Args args = c.all_args(r);
  for (Arg& a : args)
    if (const auto* dtype = std::get_if<DType>(&a)) a = stream_dtype_for(r, *dtype);
  r.emit(op, std::move(args), c.result());
}

/// x.var() and x.std(), taken apart by the exporter's type promotion.
void variance(Recovery& r, const FxCall& c) {
  r.emit("aten::var.correction", {c.tensor(r, 0), c.arg(r, 1), c.real(2, 1), false}, c.result());
}

/// The exporter's type promotion makes tensors of the numbers that bound a clamp.
void clamp(Recovery& r, const FxCall& c) {
  Args args = c.all_args(r);
  const bool tensors =
      std::any_of(args.begin() + 1, args.end(), [](const Arg& a) { return std::holds_alternative<SlotId>(a); });
  r.emit(tensors ? "aten::clamp.Tensor" : "aten::clamp", std::move(args), c.result());
}

/// The exporter's type promotion makes a tensor of the number that a value is compared with.
void compare(Recovery& r, const FxCall& c) {
  Args args = c.all_args(r);
  const bool tensors = args.size() > 1 && std::holds_alternative<SlotId>(args[1]);
  const std::string_view base = c.target().substr(5, c.target().rfind('.') - 5);
  r.emit("aten::" + std::string(base) + (tensors ? ".Tensor" : ".Scalar"), std::move(args), c.result());
}

bool says_index_add(const Recovery& r, const FxCall& c) {
  return r.origins.source_line(c.group().last).find("index_add") != std::string_view::npos;
}
/// x.index_add(dim, index, source), which the exporter takes for an index_put that accumulates.
Reads plan_index_add(Recovery& r, const FxCall& c) {
  const FxArg* indices = c.fx().arg(1);
  if (!says_index_add(r, c) || !indices || indices->items.empty() || !indices->items.back().is_reference())
    return std::nullopt;
  return reads_of_call(r, c);
}
void index_add(Recovery& r, const FxCall& c) {
  const std::vector<FxArg>& indices = c.fx().args[1].items;
  Arg index = c.convert(r, indices.back());
  // The file keeps what ScatterND reads, one index a row.
  if (const ValueId v = c.value(indices.back().text); v.valid() && r.dims(v).size() == 2)
    index = r.call("aten::squeeze.dim", {index, std::int64_t{-1}}, std::string(r.graph.name(v)) + ".index");
  r.emit("aten::index_add", {c.tensor(r, 0), std::ssize(indices) - 1, index, c.tensor(r, 2)}, c.result());
}

constexpr std::array rules{
    TargetRule{"aten.matmul", matmul, read_all},
    TargetRule{"aten.linear", linear, read_linear},
    TargetRule{"aten.addmm", addmm, read_all},
    TargetRule{"aten.layer_norm", layer_norm, read_all},
    TargetRule{"aten.native_layer_norm", layer_norm, read_all},
    TargetRule{"aten.rms_norm", rms_norm, read_all},
    TargetRule{"aten.prelu", prelu, read_all},
    TargetRule{"aten.group_norm", group_norm, read_all},
    TargetRule{"aten.native_group_norm", native_group_norm, read_all},
    TargetRule{"aten.instance_norm", instance_norm, read_all},
    TargetRule{"aten.embedding", embedding, plan_embedding},
    TargetRule{"aten._native_batch_norm_legit_functional", batch_norm, plan_batch_norm},
    TargetRule{"aten._native_batch_norm_legit_no_training", batch_norm, plan_batch_norm},
    TargetRule{"aten._native_batch_norm_legit", batch_norm, plan_batch_norm},
    TargetRule{"aten.batch_norm", batch_norm, plan_batch_norm},
    TargetRule{"aten.conv1d", convolution, plan_convolution},
    TargetRule{"aten.conv2d", convolution, plan_convolution},
    TargetRule{"aten.conv3d", convolution, plan_convolution},
    TargetRule{"aten.convolution", convolution, plan_convolution},
    TargetRule{"aten.conv_transpose1d", convolution, plan_convolution},
    TargetRule{"aten.conv_transpose2d", convolution, plan_convolution},
    TargetRule{"aten.conv_transpose3d", convolution, plan_convolution},
    TargetRule{"aten.view", view, read_all},
    TargetRule{"aten.reshape", view, read_all},
    TargetRule{"aten._unsafe_view", view, read_all},
    TargetRule{"aten.expand", expand, read_all},
    TargetRule{"aten.clone", clone, read_all},
    TargetRule{"aten.alias", identity, read_all},
    TargetRule{"aten.detach", generic, read_all},
    TargetRule{"aten.lift_fresh_copy", identity, read_all},
    TargetRule{"aten.slice", slice, read_all},
    TargetRule{"aten.copy", copy, read_source},
    TargetRule{"aten.squeeze", squeeze, read_all},
    TargetRule{"aten._to_copy", to, read_all},
    TargetRule{"aten.to", to, read_all},
    TargetRule{"prims.convert_element_type", identity, read_all},  // eager kernels promote as they read
    TargetRule{"prims.var", variance, read_all},
    TargetRule{"aten.clamp", clamp, read_all},
    TargetRule{"aten.index", index, read_index},
    TargetRule{"aten.index_select", index_select, read_all},
    TargetRule{"aten.index_put", index_add, plan_index_add},
    TargetRule{"aten.eq", compare, read_all},
    TargetRule{"aten.ne", compare, read_all},
    TargetRule{"aten.lt", compare, read_all},
    TargetRule{"aten.le", compare, read_all},
    TargetRule{"aten.gt", compare, read_all},
    TargetRule{"aten.ge", compare, read_all},
    TargetRule{"aten.mean", mean, read_all},
    TargetRule{"aten.amax", amax, read_all},
    TargetRule{"aten.as_strided", as_strided, read_all},
    TargetRule{"aten.native_dropout", native_dropout, read_all},
    TargetRule{"aten.dropout", native_dropout, read_all},
    TargetRule{"aten.empty", empty, read_all},
    TargetRule{"aten.new_empty", empty, read_all},
    TargetRule{"aten.zeros", filled, read_all},
    TargetRule{"aten.ones", filled, read_all},
    TargetRule{"aten.full", filled, read_all},
    TargetRule{"aten.new_zeros", filled, read_all},
    TargetRule{"aten.new_ones", filled, read_all},
    TargetRule{"aten.new_full", filled, read_all},
    TargetRule{"aten.rand", random, read_all},
    TargetRule{"aten.randn", random, read_all},
    TargetRule{"aten.bernoulli", bernoulli, read_all},
    TargetRule{"aten.div", div, read_all},
    TargetRule{"aten.upsample_nearest1d", upsample, read_all},
    TargetRule{"aten.upsample_nearest2d", upsample, read_all},
    TargetRule{"aten.upsample_nearest3d", upsample, read_all},
    TargetRule{"aten.upsample_linear1d", upsample, read_all},
    TargetRule{"aten.upsample_bilinear2d", upsample, read_all},
    TargetRule{"aten.upsample_trilinear3d", upsample, read_all},
    TargetRule{"aten.upsample_bicubic2d", upsample, read_all},
    TargetRule{"aten.max_pool2d_with_indices", max_pool, read_all},
    TargetRule{"aten.max_pool1d", max_pool, read_all},
    TargetRule{"aten.max_pool2d", max_pool, read_all},
    TargetRule{"aten.max_pool3d", max_pool, read_all},
    TargetRule{"aten.softmax", softmax, read_all},
    TargetRule{"aten._softmax", softmax, read_all},
    TargetRule{"aten.log_softmax", softmax, read_all},
    TargetRule{"aten._log_softmax", softmax, read_all},
    TargetRule{"aten.add", elementwise, read_all},
    TargetRule{"aten.sub", elementwise, read_all},
    TargetRule{"aten.mul", elementwise, read_all},
};

/// x.unbind(dim): the exporter writes a Slice and a Squeeze for each part. False: the nodes say it themselves.
bool claim_unbind(Recovery& r, const FxCall& c) {
  const GraphView& g = r.graph;
  const ValueId x = c.value_of_arg(0);
  if (!x.valid()) return false;
  const std::int64_t given = c.integer(1, 0);
  const std::int64_t axis = given < 0 ? given + std::ssize(g.dims(x)) : given;
  if (axis < 0 || axis >= std::ssize(g.dims(x))) return false;
  std::vector<ValueId> parts(static_cast<std::size_t>(g.dims(x)[static_cast<std::size_t>(axis)]));
  std::vector<NodeIndex> makers;
  for (const NodeIndex n : c.group().nodes) {
    if (!g.is(n, "Squeeze")) continue;
    const NodeIndex cut = g.producer(g.input(n, 0));
    if (!g.is(cut, "Slice") || g.input(cut, 0) != x) return false;
    const auto* start = g.integers(g.input(cut, 1));
    if (!start || start->size() != 1 || (*start)[0] < 0 || (*start)[0] >= std::ssize(parts)) return false;
    parts[static_cast<std::size_t>((*start)[0])] = g.output(n);
    makers.push_back(n);
  }
  if (makers.empty()) return false;
  for (const NodeIndex n : c.group().nodes) r.set_owned(n);
  r.claim({makers[0], {x}, [&r, x, axis, parts] { r.emit_many("aten::unbind.int", {r.tensor(x), axis}, parts); }});
  for (std::size_t i = 1; i < makers.size(); ++i) r.claim({makers[i], {g.output(makers[0])}, [] {}});
  return true;
}

/// Targets that the group's nodes say as well, or that have several results: left to the operators.
bool left_to_operators(std::string_view target) {
  constexpr std::array names = {"aten.sym_size",
                                "aten.split",
                                "aten.split_with_sizes",
                                "aten.chunk",
                                "aten.unbind",
                                "aten.topk",
                                "aten.scalar_tensor",
                                "aten.sort",
                                "aten.max",
                                "aten.min",
                                "aten.lstm",
                                "aten.gru",
                                "aten.index_put",
                                "aten.slice_scatter",
                                "aten.select_scatter",
                                "aten.arange",
                                "aten.item",
                                "aten.unsafe_split",
                                "aten.unsafe_split_with_sizes"};
  const std::string_view base = target.substr(0, target.rfind('.'));
  return !target.starts_with("aten.") || std::find(names.begin(), names.end(), base) != names.end();
}

const TargetRule* rule_for(std::string_view target) {
  static const auto by_target = [] {
    std::unordered_map<std::string_view, const TargetRule*> out;
    for (const TargetRule& rule : rules) out.emplace(rule.target, &rule);
    return out;
  }();
  const auto it = by_target.find(target.substr(0, target.rfind('.')));
  return it == by_target.end() ? nullptr : it->second;
}

}  // namespace

void plan_text(Recovery& r) {
  for (const FxGroup& group : r.origins.groups()) {
    const std::string_view target = group.fx.target;
    if (group.opaque) {
      r.diagnose("text-opaque", Severity::info, "the metadata of %" + std::string(group.fx.name) + " cannot be read");
      continue;
    }
    const TargetRule* rule = rule_for(target);
    const bool attention = target.starts_with("aten.scaled_dot_product_attention");
    const bool recurrent = target.ends_with(".input"), unbind = target == "aten.unbind.int";
    if (!rule && !attention && !recurrent && !unbind && left_to_operators(target)) continue;
    auto call = FxCall::resolve(r, group);
    if (!call) continue;
    if (recurrent && (claim_recurrent(r, *call) || left_to_operators(target))) continue;
    if (unbind) {
      claim_unbind(r, *call);
      continue;
    }
    const ValueId result = call->result();
    const NodeIndex at = r.graph.producer(result);
    if (attention) {
      const auto a = attention_of(r, *call);
      if (!a) continue;
      for (const NodeIndex n : group.nodes) r.set_owned(n);
      r.claim({at, reads_of(*a), [&r, a = *a, result] { call_attention(r, a, result); }});
      continue;
    }
    // A node that the optimiser merged with others does more than the text of the last of them says.
    const bool merged = !r.graph.node(at).metadata.rewriter_rule.empty();
    if (!rule && merged) continue;
    Reads reads = rule ? rule->plan(r, *call) : read_all(r, *call);
    if (!reads) continue;
    for (const NodeIndex n : group.nodes) r.set_owned(n);
    const auto emit = rule ? rule->emit : generic;
    r.claim({at, std::move(*reads), [&r, c = std::move(*call), emit] { emit(r, c); }});
  }
}

}  // namespace headroom::recovery
