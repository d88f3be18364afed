// Overloads: which form of an operator a call means, as C++ overload resolution and the schema's types decide it.
#pragma once

#include <boost/container/small_vector.hpp>
#include <span>
#include <string_view>

#include "estimator/shadow/tables/aten_table.h"
#include "estimator/shadow/value.h"

namespace headroom::shadow {

using BoundArguments = boost::container::small_vector<Value, 10>;
inline std::span<const Value> span_of(const BoundArguments& values) { return {values.data(), values.size()}; }

/// The default of an argument as a value; None where the schema gives none.
Value default_of(const aten::Argument& argument);

/// The overload of `base` ("mul") that takes `args`, given in the order of the C++ signature: keyword-only arguments
/// are positional there, and one dtype stands for TensorOptions (dtype, layout, device, pin_memory). Null when none
/// does.
const aten::OpSchema* choose_overload(const aten::Table& table, std::string_view base, std::span<const Value> args);

/// The arguments in the schema's order with defaults filled in; empty when they do not fit. A single number where the
/// schema says int[] becomes a list.
bool bind_arguments(const aten::OpSchema& schema, std::span<const Value> args, BoundArguments& bound);

}  // namespace headroom::shadow
