// Bytes: a count of bytes that cannot overflow in silence.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace headroom {

/// Thrown when a size leaves the range of a signed 64-bit integer. Callers that know which tensor or node was at work
/// turn it into an `Error` with that name.
struct SizeOverflow {};

/// a * b, both in any unit. Throws SizeOverflow.
constexpr std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) throw SizeOverflow{};
  return r;
}

/// a + b. Throws SizeOverflow.
constexpr std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) throw SizeOverflow{};
  return r;
}

class Bytes {
 public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t n) : n_(n) {}

  constexpr std::int64_t count() const { return n_; }

  constexpr Bytes& operator+=(Bytes o) {
    n_ = checked_add(n_, o.n_);
    return *this;
  }
  constexpr Bytes& operator-=(Bytes o) {
    n_ = checked_add(n_, -o.n_);
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t k) { return Bytes(checked_mul(a.n_, k)); }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;

  /// This size rounded up to a multiple of `unit` (> 0).
  constexpr Bytes rounded_up(std::int64_t unit) const { return Bytes(checked_mul(n_ / unit + (n_ % unit != 0), unit)); }

 private:
  std::int64_t n_ = 0;
};

inline constexpr std::int64_t KiB = 1024;
inline constexpr std::int64_t MiB = 1024 * KiB;
inline constexpr std::int64_t GiB = 1024 * MiB;

}  // namespace headroom
