// Operators that combine tensors element by element, with numpy's broadcast.
#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

#include "estimator/bind/fold.h"
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

using MaybeInteger = std::optional<std::int64_t>;

/// f(a, b) for every element; nullopt as soon as f has no answer.
template <class Result, class Element, class F>
std::optional<std::vector<Result>> combined(const std::vector<Element>& a, const Dims& a_dims,
                                            const std::vector<Element>& b, const Dims& b_dims, const Dims& out, F f) {
  std::vector<Result> result(static_cast<std::size_t>(element_count(out)));
  const auto store = [&](std::size_t i, Element x, Element y) {
    const std::optional<Result> r = f(x, y);
    if (r) result[i] = *r;
    return r.has_value();
  };
  const bool a_whole = a.size() == result.size(), b_whole = b.size() == result.size();
  if ((a_whole || a.size() == 1) && (b_whole || b.size() == 1)) {
    for (std::size_t i = 0; i < result.size(); ++i)
      if (!store(i, a[a_whole ? i : 0], b[b_whole ? i : 0])) return std::nullopt;
    return result;
  }
  const Integers from_a = broadcast_elements(a_dims, out), from_b = broadcast_elements(b_dims, out);
  for (std::size_t i = 0; i < result.size(); ++i)
    if (!store(i, a[static_cast<std::size_t>(from_a[i])], b[static_cast<std::size_t>(from_b[i])])) return std::nullopt;
  return result;
}

/// Folds inputs a and b into output 0 of type `dtype`, shape `dims`; `on_integers` and `on_reals` may return nullopt
/// (division by zero, overflow): then the contents stay unknown.
template <class OnIntegers, class OnReals>
void binary(const NodeShaper& op, DType dtype, OnIntegers on_integers, OnReals on_reals) {
  const ShapedValue& a = op.tensor(0);
  const ShapedValue& b = op.tensor(1);
  Dims dims = a.dims == b.dims ? a.dims : op.broadcast(a.dims, b.dims);
  ShapedValue* out = op.set(0, dtype, std::move(dims));
  if (!out || !a.contents || !b.contents || is_float(a.dtype) != is_float(b.dtype) || !foldable(dtype, out->dims))
    return;
  if (is_float(a.dtype)) {
    if (is_float(dtype)) {
      auto folded = combined<double>(a.contents->reals, a.dims, b.contents->reals, b.dims, out->dims,
                                     [&](double x, double y) { return std::optional(rounded(dtype, on_reals(x, y))); });
      if (folded) out->contents = known(std::move(*folded));
    } else {
      auto folded = combined<std::int64_t>(
          a.contents->reals, a.dims, b.contents->reals, b.dims, out->dims,
          [&](double x, double y) { return MaybeInteger(static_cast<std::int64_t>(on_reals(x, y))); });
      if (folded) out->contents = known(std::move(*folded));
    }
  } else {
    auto folded = combined<std::int64_t>(a.contents->integers, a.dims, b.contents->integers, b.dims, out->dims,
                                         [&](std::int64_t x, std::int64_t y) {
                                           MaybeInteger r = on_integers(x, y);
                                           if (r) r = wrapped(dtype, *r);
                                           return r;
                                         });
    if (folded) out->contents = known(std::move(*folded));
  }
}

double no_real(double, double) { return NAN; }

void add(const NodeShaper& op) {
  binary(
      op, op.dtype(0),
      [](std::int64_t x, std::int64_t y) {
        std::int64_t r = 0;
        return __builtin_add_overflow(x, y, &r) ? std::nullopt : MaybeInteger(r);
      },
      [](double x, double y) { return x + y; });
}

void sub(const NodeShaper& op) {
  binary(
      op, op.dtype(0),
      [](std::int64_t x, std::int64_t y) {
        std::int64_t r = 0;
        return __builtin_sub_overflow(x, y, &r) ? std::nullopt : MaybeInteger(r);
      },
      [](double x, double y) { return x - y; });
}

void mul(const NodeShaper& op) {
  binary(
      op, op.dtype(0),
      [&](std::int64_t x, std::int64_t y) {
        std::int64_t r = 0;
        if (__builtin_mul_overflow(x, y, &r))
          op.fail("the product " + std::to_string(x) + " * " + std::to_string(y) + " does not fit in 64 bits");
        return MaybeInteger(r);
      },
      [](double x, double y) { return x * y; });
}

/// Integers divide toward zero (opset 14).
void div(const NodeShaper& op) {
  binary(
      op, op.dtype(0),
      [](std::int64_t x, std::int64_t y) {
        return y == 0 || (y == -1 && x == INT64_MIN) ? std::nullopt : MaybeInteger(x / y);
      },
      [](double x, double y) { return x / y; });
}

/// fmod = 0: the sign of the divisor, as Python; 1: of the dividend, as C.
void mod(const NodeShaper& op) {
  const bool c_style = op.node().integer("fmod", 0) != 0;
  binary(
      op, op.dtype(0),
      [c_style](std::int64_t x, std::int64_t y) {
        if (y == 0) return MaybeInteger();
        if (y == -1) return MaybeInteger(0);
        const std::int64_t r = x % y;
        return MaybeInteger(!c_style && r != 0 && (r < 0) != (y < 0) ? r + y : r);
      },
      [c_style](double x, double y) {
        const double r = std::fmod(x, y);
        return !c_style && r != 0 && (r < 0) != (y < 0) ? r + y : r;
      });
}

MaybeInteger power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  std::int64_t r = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) && __builtin_mul_overflow(r, base, &r)) return std::nullopt;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
  return r;
}

/// The exponent may have a type of its own (opset 12).
void pow(const NodeShaper& op) {
  const Reals* exponents = op.reals(1);
  const Integers* bases = op.integers(0);
  if (exponents && bases && exponents->size() == 1 && bases->size() <= 1 &&
      (*exponents)[0] == std::floor((*exponents)[0]) && std::fabs((*exponents)[0]) < 64) {
    Integers result;
    for (const auto b : *bases)
      if (const auto r = power(b, static_cast<std::int64_t>((*exponents)[0]))) result.push_back(*r);
    if (result.size() == bases->size()) {
      op.set_known(0, op.dtype(0), op.broadcast_inputs({0, 1}), std::move(result));
      return;
    }
  }
  const Integers* integer_exponents = op.integers(1);
  if (const Reals* reals = op.reals(0); reals && integer_exponents && integer_exponents->size() == 1 &&
                                        foldable(op.dtype(0), op.broadcast_inputs({0, 1}))) {
    Reals result = *reals;
    for (auto& r : result) r = rounded(op.dtype(0), std::pow(r, static_cast<double>((*integer_exponents)[0])));
    op.set_known(0, op.dtype(0), op.broadcast_inputs({0, 1}), std::move(result));
    return;
  }
  binary(op, op.dtype(0), power, [](double x, double y) { return std::pow(x, y); });
}

void prelu(const NodeShaper& op) {
  op.require(op.broadcast_inputs({0, 1}) == op.dims(0), "the slope does not broadcast to the input");
  op.same_shape(0, 0);
}

void bit_shift(const NodeShaper& op) {
  const bool left = op.node().text("direction") == "LEFT";
  binary(
      op, op.dtype(0),
      [left](std::int64_t x, std::int64_t y) {
        if (y < 0 || y > 63 || x < 0) return MaybeInteger();
        const auto bits = static_cast<std::uint64_t>(x);
        return MaybeInteger(static_cast<std::int64_t>(left ? bits << y : bits >> y));
      },
      no_real);
}

void bitwise_and(const NodeShaper& op) {
  binary(
      op, op.dtype(0), [](std::int64_t x, std::int64_t y) { return MaybeInteger(x & y); }, no_real);
}
void bitwise_or(const NodeShaper& op) {
  binary(
      op, op.dtype(0), [](std::int64_t x, std::int64_t y) { return MaybeInteger(x | y); }, no_real);
}
void bitwise_xor(const NodeShaper& op) {
  binary(
      op, op.dtype(0), [](std::int64_t x, std::int64_t y) { return MaybeInteger(x ^ y); }, no_real);
}

template <class Compare>
void comparison(const NodeShaper& op, Compare compare) {
  binary(
      op, DType::b8, [compare](std::int64_t x, std::int64_t y) { return MaybeInteger(compare(x, y)); },
      [compare](double x, double y) { return compare(x, y) ? 1.0 : 0.0; });
}
void equal(const NodeShaper& op) {
  comparison(op, [](auto x, auto y) { return x == y; });
}
void greater(const NodeShaper& op) {
  comparison(op, [](auto x, auto y) { return x > y; });
}
void greater_or_equal(const NodeShaper& op) {
  comparison(op, [](auto x, auto y) { return x >= y; });
}
void less(const NodeShaper& op) {
  comparison(op, [](auto x, auto y) { return x < y; });
}
void less_or_equal(const NodeShaper& op) {
  comparison(op, [](auto x, auto y) { return x <= y; });
}
void logical_and(const NodeShaper& op) {
  comparison(op, [](auto x, auto y) { return x != 0 && y != 0; });
}
void logical_or(const NodeShaper& op) {
  comparison(op, [](auto x, auto y) { return x != 0 || y != 0; });
}
void logical_xor(const NodeShaper& op) {
  comparison(op, [](auto x, auto y) { return (x != 0) != (y != 0); });
}

/// combine(...combine(combine(x0, x1), x2)...), then finish(r, number of inputs).
template <class Combine, class Finish>
void variadic(const NodeShaper& op, Combine combine, Finish finish) {
  op.require(op.input_count() > 0, "there is no input");
  Dims dims = op.dims(0);
  bool all_known = op.tensor(0).contents != nullptr;
  for (std::size_t i = 1; i < op.input_count(); ++i) {
    if (op.dims(i) != dims) dims = op.broadcast(dims, op.dims(i));
    all_known = all_known && op.tensor(i).contents && op.dtype(i) == op.dtype(0);
  }
  const DType dtype = op.dtype(0);
  ShapedValue* out = op.set(0, dtype, std::move(dims));
  if (!out || !all_known || !foldable(dtype, out->dims)) return;
  const auto fold = [&](auto part) {
    auto result = part(*op.tensor(0).contents);
    Dims have = op.dims(0);
    using Element = typename decltype(result)::value_type;
    for (std::size_t i = 1; i < op.input_count(); ++i) {
      const Dims wide = op.broadcast(have, op.dims(i));
      result = *combined<Element>(result, have, part(*op.tensor(i).contents), op.dims(i), wide,
                                  [&](Element x, Element y) { return std::optional<Element>(combine(x, y)); });
      have = wide;
    }
    for (auto& r : result) r = finish(r, static_cast<Element>(op.input_count()));
    return known(std::move(result));
  };
  if (is_float(dtype))
    out->contents = fold([](const KnownContents& k) { return k.reals; });
  else
    out->contents = fold([](const KnownContents& k) { return k.integers; });
}
const auto as_it_is = [](auto r, auto) { return r; };
const auto wrapping_sum = [](auto x, auto y) {
  if constexpr (std::is_integral_v<decltype(x)>) {
    __builtin_add_overflow(x, y, &x);
    return x;
  } else {
    return x + y;
  }
};
void maximum(const NodeShaper& op) {
  variadic(
      op, [](auto x, auto y) { return std::max(x, y); }, as_it_is);
}
void minimum(const NodeShaper& op) {
  variadic(
      op, [](auto x, auto y) { return std::min(x, y); }, as_it_is);
}
void sum(const NodeShaper& op) { variadic(op, wrapping_sum, as_it_is); }
void mean(const NodeShaper& op) {
  variadic(op, wrapping_sum, [](auto r, auto n) { return r / n; });
}

/// Where(condition, x, y).
void where(const NodeShaper& op) {
  const ShapedValue &c = op.tensor(0), &x = op.tensor(1), &y = op.tensor(2);
  ShapedValue* out = op.set(0, x.dtype, op.broadcast_inputs({0, 1, 2}));
  const Integers* chosen = op.integers(0);
  if (!out || !chosen || is_float(x.dtype) != is_float(y.dtype) || !foldable(x.dtype, out->dims)) return;
  const Integers from_c = broadcast_elements(c.dims, out->dims);
  const auto takes_x = [&](std::size_t i) { return (*chosen)[static_cast<std::size_t>(from_c[i])] != 0; };
  bool any_x = false, any_y = false;
  for (std::size_t i = 0; i < from_c.size(); ++i) (takes_x(i) ? any_x : any_y) = true;
  if ((any_x && !x.contents) || (any_y && !y.contents)) return;
  const Integers from_x = broadcast_elements(x.dims, out->dims), from_y = broadcast_elements(y.dims, out->dims);
  const auto select = [&](auto part) {
    using Elements = std::decay_t<decltype(part(*x.contents))>;
    Elements result(from_c.size());
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = takes_x(i) ? part(*x.contents)[static_cast<std::size_t>(from_x[i])]
                             : part(*y.contents)[static_cast<std::size_t>(from_y[i])];
    return known(std::move(result));
  };
  if (is_float(x.dtype))
    out->contents = select([](const KnownContents& k) -> const Reals& { return k.reals; });
  else
    out->contents = select([](const KnownContents& k) -> const Integers& { return k.integers; });
}

constexpr OperatorRule rules[] = {
    {"Add", add},
    {"Sub", sub},
    {"Mul", mul},
    {"Div", div},
    {"Mod", mod},
    {"Pow", pow},
    {"PRelu", prelu},
    {"BitShift", bit_shift},
    {"BitwiseAnd", bitwise_and},
    {"BitwiseOr", bitwise_or},
    {"BitwiseXor", bitwise_xor},
    {"And", logical_and},
    {"Or", logical_or},
    {"Xor", logical_xor},
    {"Equal", equal},
    {"Greater", greater},
    {"GreaterOrEqual", greater_or_equal},
    {"Less", less},
    {"LessOrEqual", less_or_equal},
    {"Max", maximum},
    {"Min", minimum},
    {"Sum", sum},
    {"Mean", mean},
    {"Where", where},
};

}  // namespace

std::span<const OperatorRule> arithmetic_rules() { return rules; }

}  // namespace headroom
