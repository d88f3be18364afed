// What a Python statement says of in-place calls: "x.mul_(y)", "F.celu(x, inplace=True)".
#pragma once

#include <string_view>
#include <vector>

namespace headroom::recovery {

/// The calls of one ATen operator ("mul") that a statement spells, by name or sign, in the order in which Python makes
/// them: true where in place. Empty: it spells none, or none of its calls can be in place.
std::vector<bool> spelled_calls(std::string_view statement, std::string_view name);

}  // namespace headroom::recovery
