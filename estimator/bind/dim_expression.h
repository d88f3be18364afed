// Dim expressions: sizes that exporters write as formulas of other sizes ("2*s0", "16*((height//16))").
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace headroom {

using DimLookup = std::function<std::optional<std::int64_t>(std::string_view)>;

/// Value of `text` with + - * / // % ( ) Max Min over integers and names; nullopt when it is no such formula, a name
/// has no value, or the value is no size.
std::optional<std::int64_t> evaluate_dim(std::string_view text, const DimLookup& lookup);

/// Names that the formula uses; empty when `text` is a plain name or no formula.
std::vector<std::string_view> names_in_dim(std::string_view text);

}  // namespace headroom
