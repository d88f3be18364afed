// Recovery: the program while it is being recovered. What the lowering of one node, of one fx group or of one pattern
// uses to name its operands and to make its calls.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "estimator/program/program.h"
#include "estimator/recover/graph_view.h"
#include "estimator/recover/mode.h"
#include "estimator/recover/origins.h"
#include "estimator/recover/parameters.h"
#include "estimator/recover/recover.h"

namespace headroom::recovery {

using Args = std::vector<Arg>;

/// What makes a call live and where it stands in Python.
struct CallOrigin {
  NodeIndex node = no_node;  ///< its frames and scopes are the call's
  int outer_frames = 0;      ///< how many innermost frames the call lies outside of (a restored dropout)
  bool all_named = false;    ///< results that nobody reads have names too
  bool effect = false;       ///< runs even if nobody reads its result
  std::string_view
      statement;       ///< not empty: ran in a module and a line of their own (a convolution whose node names its norm)
  bool local = false;  ///< its results are locals of that function: gone after its last call
  bool temporary = false;  ///< its results are locals of a function the file does not show: gone after the last read
};

/// The mask argument of one attention call.
struct MaskArgument {
  ValueId mask;              ///< invalid: None
  bool causal = false;       ///< is_causal=True
  bool causal_bias = false;  ///< `mask` is a bias over which the call lays a causal mask of its own
};

/// A few nodes that eager runs as other calls than the operators say. Takes the place of its last node.
struct Match {
  NodeIndex last = no_node;
  std::vector<ValueId> reads;  ///< what the calls read; the nodes in between are dead unless something else reads them
  std::function<void()> emit;
};

/// A dropout, the copy of a turned tensor or a detach that the export no longer has.
struct RestoredCall {
  std::string name;  ///< of its result in the texts that read it; empty: everything reads it
  int outer_frames = 0;
  std::string_view op = "dropout";
  bool in_layers = true;  ///< of a dropout: layers have it, whose attention drops out too
};

class Recovery {
 public:
  Recovery(const ShapedGraph& shaped, const RecoverOptions& options, Program& program);

  const GraphView graph;
  Origins origins;
  const Mode mode;
  const RecoverOptions& options;
  Program& program;
  ProgramBuilder builder;
  ParameterTable parameters;

  // --- planning: before the walk -------------------------------------------------------------------------------------
  void claim(Match match);
  bool is_claimed(NodeIndex n) const { return match_of_[static_cast<std::size_t>(n)] >= 0; }
  /// Nodes of a claimed group: patterns leave them alone.
  void set_owned(NodeIndex n) { owned_[static_cast<std::size_t>(n)] = true; }
  bool is_free(NodeIndex n) const { return !is_claimed(n) && !owned_[static_cast<std::size_t>(n)]; }
  /// The node reads only these of its inputs (a mask that eager drops is dead then).
  void read_only(NodeIndex n, std::vector<ValueId> reads) { reads_[n] = std::move(reads); }
  /// `v` is `source` in eager: a mask without its expand, a learned bias without its Where.
  void replace(ValueId v, ValueId source) { replaced_[graph.resolve(v)] = graph.resolve(source); }
  ValueId replaced(ValueId v) const;
  void restore_dropout(ValueId after, std::string name, int outer_frames, bool in_layers = true);
  /// `op`: "contiguous" or "detach".
  void restore_call(ValueId after, std::string_view op, std::string name);
  bool restores_dropouts_in_layers() const;
  bool restores(ValueId v) const { return restored_.contains(graph.resolve(v)); }
  /// When `reader` is lowered, `v` is what `make` returns.
  void override_operand(NodeIndex reader, ValueId v, std::function<SlotId()> make) {
    overrides_[{reader, graph.resolve(v)}] = std::move(make);
    overridden_.insert({reader, graph.resolve(v)});
  }
  /// The packed-sequence test of transformers runs once, whatever the number of layers.
  bool packed_test_planned = false;
  /// Tensors made of numbers that take the dtype of another value (`dtype=query.dtype`).
  std::unordered_map<ValueId, ValueId> made_like;
  bool merges_equal_vectors = false;
  /// Masks decided so far.
  std::unordered_map<ValueId, MaskArgument> decided_masks;
  /// Nodes of `x += y` that neither text nor pattern tells.
  std::unordered_set<NodeIndex> augmented;
  bool mask_input_ignored = false;
  bool quantized_said = false;
  int unfolded_batch_norms = 0;
  void at_node(NodeIndex n, std::function<void()> emit) { before_[n].push_back(std::move(emit)); }

  // --- the walk
  // --------------------------------------------------------------------------------------------------------
  void run();

  // --- operands of the node at hand
  // -------------------------------------------------------------------------------------
  NodeIndex node() const { return at_; }
  const Node& onnx() const { return graph.node(at_); }
  ValueId in(std::size_t i) const { return graph.input(at_, i); }
  ValueId out(std::size_t i = 0) const { return onnx().output(i); }
  bool has(std::size_t i) const { return in(i).valid(); }
  bool has_slot(ValueId v) const { return slot_of_[replaced(v).at()].valid(); }
  /// A tensor, or the number a host scalar holds.
  Arg operand(ValueId v);
  Arg operand(std::size_t i) { return has(i) ? operand(in(i)) : Arg(None{}); }
  /// A tensor in any case: a known constant becomes one.
  SlotId tensor(ValueId v);
  SlotId tensor(std::size_t i) { return tensor(in(i)); }
  /// The parameter that a text names, used in the module at hand.
  SlotId named_parameter(std::string_view reference, const Dims& dims, DType dtype);
  /// A tensor, or None when the input is absent.
  Arg optional_tensor(std::size_t i) { return has(i) ? Arg(tensor(in(i))) : Arg(None{}); }
  const Dims& dims(ValueId v) const { return graph.dims(v); }
  const Dims& out_dims(std::size_t i = 0) const { return graph.dims(out(i)); }
  DType dtype(ValueId v) const { return graph.value(v).dtype; }
  /// A value that lives in Python, not on the device: sizes and what is computed of them.
  bool is_host(ValueId v) const { return host_[graph.resolve(v).at()]; }
  /// A value that stays float32 in a module that runs in half precision.
  bool is_wide(ValueId v) const { return wide_[graph.resolve(v).at()]; }
  void set_wide(ValueId v);
  /// The node's result has the stream's dtype even if it reads a float32 value.
  void set_narrow(NodeIndex n) { narrow_[static_cast<std::size_t>(n)] = true; }
  /// The value goes back to the stream's dtype as soon as it is made.
  void cast_result(ValueId v) { cast_results_.insert(graph.resolve(v)); }
  void set_host(ValueId v) { host_[graph.resolve(v).at()] = true; }

  // --- making calls
  // ------------------------------------------------------------------------------------------------------
  /// One call whose result is `v`.
  SlotId emit(std::string_view op, Args args, ValueId v);
  /// One call whose result is the node's first output.
  SlotId emit(std::string_view op, Args args) { return emit(op, std::move(args), out()); }
  /// One call whose result is no value of the file.
  SlotId call(std::string_view op, Args args, std::string name);
  /// A call with several results; `values[i]` may be invalid.
  Slots emit_many(std::string_view op, Args args, const std::vector<ValueId>& values);
  /// A call that returns a list: one slot an element.
  void list_call(std::string_view op, Args args, Slots outputs);
  void define_list(ValueId v, Slots parts) { lists_[graph.resolve(v)] = std::move(parts); }
  Slots list(ValueId v) const;
  /// A call for its effect; kept although nobody reads a result.
  void effect(std::string_view op, Args args);
  /// The value is what `slot` holds (an operation that does nothing in eager).
  void define(ValueId v, SlotId slot);
  void alias(ValueId v, ValueId source);
  /// Keeps the last call even if nobody reads it.
  void keep_last() { origins_of_calls_.back().effect = true; }
  void last_is_statement(std::string_view name) { origins_of_calls_.back().statement = name; }
  void last_is_local() { origins_of_calls_.back().local = true; }
  void last_is_temporary() { origins_of_calls_.back().temporary = true; }
  /// fx names that stand for no value of the file (dropouts the exporter removed).
  SlotId slot_named(std::string_view fx_name) const;

  ModuleId module_at(NodeIndex n);
  /// The node's first input has its result's dims: it could be changed in place.
  bool has_result_dims_of_first(NodeIndex n) const {
    return graph.input(n, 0).valid() && graph.output(n).valid() &&
           graph.dims(graph.input(n, 0)) == graph.dims(graph.output(n));
  }
  std::string_view path() const { return origins.module(at_); }
  void diagnose(std::string code, Severity severity, std::string message, Bytes bound = {});
  const CallOrigin& origin(std::size_t call) const { return origins_of_calls_[call]; }
  std::vector<CallOrigin>& call_origins() { return origins_of_calls_; }

 private:
  void find_live();
  void find_host_values();
  bool is_root_parameter(ValueId v, const std::unordered_set<std::string_view>& named_parameters) const;
  void lower(NodeIndex n);
  /// Float results of float32 operands are float32.
  void widen(NodeIndex n, const std::vector<ValueId>& reads);
  bool is_host_node(NodeIndex n) const;
  /// Small enough for shape arithmetic, and known.
  bool is_small(ValueId v) const;
  void emit_restored(ValueId v);
  bool in_rotary_module(ModuleId module);
  /// Nothing flows back from a block without gradients: what comes from outside goes in detached.
  void detach_operands(Args& args);
  void append(std::string_view op, Args args, Slots outputs);
  void restore_original_frequencies(SlotId frequencies);
  /// A product of a float32 value with one of the stream's dtype raises in PyTorch, so the program has cast the first
  /// (`emb.to(sample.dtype)`): a cast that did nothing when the file was made, and left no trace in it.
  void narrow_operands(std::string_view op, Args& args);
  std::unordered_set<SlotId> seen_frequencies_;

  std::vector<Match> matches_;
  std::vector<std::int32_t> match_of_;  ///< by node: the match that it is the last node of
  std::unordered_map<NodeIndex, std::vector<ValueId>> reads_;
  std::unordered_map<NodeIndex, std::vector<std::function<void()>>> before_;
  std::map<std::pair<NodeIndex, ValueId>, std::function<SlotId()>> overrides_;
  std::set<std::pair<NodeIndex, ValueId>> overridden_;
  std::unordered_map<ValueId, ValueId> replaced_;
  std::unordered_map<ValueId, RestoredCall> restored_;
  std::unordered_map<std::string, SlotId> named_slots_;
  std::vector<bool> owned_;
  std::vector<bool> live_;
  std::vector<bool> host_;
  std::vector<bool> wide_;
  std::vector<bool> narrow_;
  std::unordered_set<SlotId> wide_slots_;  ///< what the wide values are in
  std::unordered_set<SlotId> no_grad_slots_;
  std::unordered_map<SlotId, SlotId> detached_;
  std::unordered_set<ValueId> cast_results_;
  std::vector<SlotId> slot_of_;
  std::unordered_map<ValueId, Slots> lists_;
  std::vector<CallOrigin> origins_of_calls_;
  std::vector<ModuleId> module_of_scope_;    ///< invalid: not asked yet
  std::vector<std::int8_t> rotary_modules_;  ///< by ModuleId: -1 not asked yet
  NodeIndex at_ = no_node;
  int outer_frames_ = 0;
};

}  // namespace headroom::recovery
