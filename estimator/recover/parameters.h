// ParameterTable: the module's parameters and buffers, as named_parameters() would list them.
//
// A file's initializers are not that list: exporters merge equal ones, drop zero biases, transpose weights, fold batch
// norms and keep constants beside them (recovery rules: names in the metadata text count, not initializers).
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/program/program.h"
#include "estimator/recover/graph_view.h"
#include "estimator/recover/origins.h"

namespace headroom::recovery {

class ParameterTable {
 public:
  ParameterTable(const GraphView& graph, const Origins& origins, Program& program, ProgramBuilder& builder);

  /// The stored vector `v`, read in module `path`: files that merge equal vectors name one, so that another module's
  /// name on it means a vector of its own.
  SlotId stored_in(ValueId v, std::string_view path);
  /// The stored tensor `v` as the module holds it. `reversed`: the file holds the transposed of a two-dimensional
  /// weight.
  SlotId stored(ValueId v, bool reversed = false);
  /// The constant `v` that takes the place of a trained weight.
  SlotId trained(ValueId v, bool reversed, std::string name);
  /// Gives a weight that folding has renamed its module's name for it.
  void name_weight_of(SlotId slot, std::string_view module_path);
  /// The floating-point weight of which the file holds integers.
  SlotId dequantized(ValueId v);
  /// The stored tensor `v`, which broadcasts, as the module's vector of `size` elements.
  SlotId vector(ValueId v, std::int64_t size);
  /// The parameter that an fx text names ("p_h_0_ln_1_weight", "b_bn1_running_mean"), used in module `path`. `dims` are
  /// asked for only when no initializer of that name is there.
  SlotId named(std::string_view reference, std::string_view module_path, const Dims& dims, DType dtype);
  /// Initializer of an fx reference, if the file still has it.
  ValueId initializer_named(std::string_view reference) const;
  /// A parameter or buffer that a rule restores, listed next to `beside` (or at the end).
  SlotId restored(std::string name, Dims dims, DType dtype, bool buffer, SlotId beside);
  /// A known tensor that eager makes of Python numbers; neither parameter nor trainable.
  SlotId constant(ValueId v);

  bool is_parameter(SlotId slot) const {
    return slot.valid() && slot.at() < entry_of_.size() && entry_of_[slot.at()] >= 0;
  }
  const Parameter& at(SlotId slot) const { return entries_[static_cast<std::size_t>(entry_of_[slot.at()])].parameter; }
  void set_buffer(SlotId slot);
  /// The first trainable floating-point parameter: its dtype is that of the module's stream.
  SlotId stream() const;
  /// One tensor under two names: `path` is where named_parameters() meets it first.
  void tie(SlotId slot, std::string first_name);
  /// Counts the initializer `from` as the same tensor as `slot`.
  void same_as(ValueId from, SlotId slot);
  void also_named(SlotId slot, std::string name) { entry(slot).parameter.also_named.push_back(std::move(name)); }
  bool is_tied(SlotId slot) const { return is_parameter(slot) && !at(slot).also_named.empty(); }

  /// Moves the list into the program: what the module surely has, and what the calls read.
  void finish(const std::vector<bool>& slot_is_read);

 private:
  struct Entry {
    Parameter parameter;
    std::int64_t initializer = -1;  ///< place in the file's list
    SlotId beside;
    bool certain = false;  ///< the module has it even if no call reads it
    bool first = false;
  };
  /// Gives the newest entry its slot.
  SlotId place_newest();
  Entry& entry(SlotId slot) { return entries_[static_cast<std::size_t>(entry_of_[slot.at()])]; }
  void index_names() const;
  /// What the texts name the initializer: 'p' a parameter ("p_cls_token"), 'b' a buffer ("b_embed_positions"), or 0.
  char named_kind(ValueId v);

  const GraphView& graph_;
  const Origins& origins_;
  Program& program_;
  ProgramBuilder& builder_;
  std::deque<Entry> entries_;
  std::vector<std::int32_t> entry_of_;  ///< by SlotId
  std::vector<SlotId> by_value_;        ///< by ValueId; invalid: not in the table
  std::unordered_map<std::string, SlotId> by_reference_;
  std::unordered_map<std::string, SlotId> split_;  ///< merged vectors, by the name they have got back
  mutable std::unordered_map<std::string, ValueId> mangled_;
  std::unordered_map<ValueId, char> named_kinds_;
  bool texts_searched_ = false;
};

/// A name that an exporter made up: "onnx::MatMul_145", "val_23", "117".
bool is_anonymous(std::string_view name);
/// A leaf name that modules register as a buffer.
bool is_buffer_name(std::string_view name);

}  // namespace headroom::recovery
