// FxCall: one fx group with its references resolved to values of the graph.
#pragma once

#include <boost/container/small_vector.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

class FxCall {
 public:
  /// A call has few operands: no heap.
  template <class T>
  using Few = boost::container::small_vector<T, 4>;

  /// nullopt when a reference can be paired with no value: the group's nodes run one by one then.
  static std::optional<FxCall> resolve(const Recovery& r, const FxGroup& group);

  const FxGroup& group() const { return *group_; }
  const FxNode& fx() const { return group_->fx; }
  std::string_view target() const { return group_->fx.target; }
  /// The value that the group's readers read, its result.
  ValueId result() const { return result_; }
  /// Tensors from outside the group that its nodes read, in order; without sizes and numbers.
  const Few<ValueId>& data() const { return data_; }
  /// The value a reference stands for; invalid for parameters and removed dropouts.
  ValueId value(std::string_view reference) const;
  /// The value of argument i when it is a reference to one.
  ValueId value_of_arg(std::size_t i) const;
  /// A reference was paired by elimination: the node it names is gone.
  bool was_paired(std::string_view reference) const;
  NodeIndex find(std::initializer_list<std::string_view> op_types) const;

  // At the time of the walk.
  /// Argument i as an operand; the schema's default when the text has none.
  Arg arg(Recovery& r, std::size_t i) const;
  Arg convert(Recovery& r, const FxArg& a) const;
  SlotId tensor(Recovery& r, std::size_t i) const;
  Arg keyword(Recovery& r, std::string_view name) const;
  /// A parameter argument with these dims where the file no longer says.
  Arg parameter(Recovery& r, std::size_t i, const Dims& dims) const;
  double real(std::size_t i, double fallback) const;
  std::int64_t integer(std::size_t i, std::int64_t fallback) const;
  /// All arguments in the schema's order, keyword-only ones in their places.
  Args all_args(Recovery& r) const;
  bool has_parameter(std::size_t i) const;

 private:
  const FxGroup* group_ = nullptr;
  const GraphView* graph_ = nullptr;
  ValueId result_;
  Few<ValueId> data_;
  struct Resolved {
    std::string_view reference;
    ValueId value;
    bool paired = false;
  };
  Few<Resolved> references_;
};

/// "p_", "b_" or "c_": a parameter, a buffer, a constant of the module.
bool is_module_tensor(std::string_view reference);

}  // namespace headroom::recovery
