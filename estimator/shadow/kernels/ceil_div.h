#pragma once

#include <cstdint>

namespace headroom::shadow {

/// a / b, rounded up; of counts above or at 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace headroom::shadow
