// Rules that many operators share: names that stand for another operator, and in-place forms.
#pragma once

#include <algorithm>
#include <string_view>

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

/// An operator's name as a template argument.
template <std::size_t N>
struct OperatorName {
  char text[N];
  constexpr OperatorName(const char (&s)[N]) { std::copy_n(s, N, text); }
  constexpr std::string_view view() const { return {text, N - 1}; }
};

/// Passes all arguments on to another operator: `absolute` is `abs`.
template <OperatorName target>
Outputs forward_to(Shadow& m, Args a) {
  return m.dispatch(target.view(), a.values());
}

/// The call has happened inside its first argument; no memory but the caller's.
inline Outputs in_place(Shadow&, Args a) { return {a[0]}; }

/// `x` itself: what `.contiguous()` of a contiguous tensor returns.
inline Outputs itself(Shadow&, Args a) { return {a[0]}; }

}  // namespace headroom::shadow
