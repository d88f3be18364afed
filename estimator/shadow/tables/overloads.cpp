#include "estimator/shadow/tables/overloads.h"

namespace headroom::shadow {
namespace {

using aten::Argument;
using aten::Type;

/// How well a value fits an argument: 0 not at all, 1 by a conversion, 2 exactly.
int fit(const Argument& a, const Value& v) {
  if (v.none()) return a.optional || a.optional_elements ? 2 : a.type == Type::tensor && !a.list ? 1 : 0;
  if (a.list) {
    if (a.type == Type::tensor) return v.is_list() ? 2 : v.is_integers() && v.integers().empty() ? 1 : 0;
    if (a.type == Type::integer) return v.is_integers() ? 2 : v.is_integer() ? 1 : 0;  // IntArrayRef of one
    return v.is_list() ? 2 : v.is_integers() ? 1 : 0;
  }
  switch (a.type) {
    case Type::tensor:
      return v.is_tensor() ? 2 : 0;
    case Type::integer:
      return v.is_integer() ? 2 : 0;
    case Type::real:
      return v.is_real() ? 2 : v.is_integer() ? 1 : 0;
    case Type::scalar:
      return v.is_number() ? 2 : 0;
    case Type::boolean:
      return v.is_bool() ? 2 : 0;
    case Type::text:
    case Type::memory_format:
      return v.is_text() ? 2 : 0;
    case Type::dtype:
      return v.is_dtype() ? 2 : 0;
    case Type::layout:
    case Type::device:
    case Type::other:
      return 0;
  }
  return 0;
}

/// Walks the arguments along the schema. Returns the sum of fits, -1 when one does not; calls f(place, value) on each.
template <class F>
int match(const aten::OpSchema& schema, std::span<const Value> args, F&& f) {
  int sum = 0;
  std::size_t place = 0;
  for (const Value& v : args) {
    if (place >= schema.arguments.size()) return -1;
    const Argument& a = schema.arguments[place];
    const int one = fit(a, v);
    if (one == 0) return -1;
    sum += one;
    f(place++, v);
    // TensorOptions: layout, device and pin_memory came with the dtype.
    if (a.type == Type::dtype)
      while (place < schema.arguments.size() &&
             (schema.arguments[place].type == Type::layout || schema.arguments[place].type == Type::device ||
              schema.arguments[place].name == "pin_memory"))
        ++place;
  }
  for (; place < schema.arguments.size(); ++place)
    if (!schema.arguments[place].has_default) return -1;
  return sum;
}

}  // namespace

Value default_of(const Argument& argument) {
  using K = aten::Literal::Kind;
  const aten::Literal& l = argument.value;
  switch (l.kind) {
    case K::none:
      return {};
    case K::integer:
      if (argument.type == Type::real) return Value(static_cast<double>(l.integer));
      if (argument.list && argument.type == Type::integer)
        return Value(Dims(static_cast<std::size_t>(argument.list_size ? argument.list_size : 1), l.integer));
      return Value(l.integer);
    case K::real:
      return Value(l.real);
    case K::boolean:
      return Value(l.integer != 0);
    case K::integers:
      return Value(l.integers);
    case K::text:
      return Value(l.text);
    case K::dtype:
      return Value(static_cast<DType>(l.integer));
  }
  return {};
}

const aten::OpSchema* choose_overload(const aten::Table& table, std::string_view base, std::span<const Value> args) {
  const aten::OpSchema* best = nullptr;
  int best_fit = -1;
  for (const aten::OpSchema* schema : table.overloads(base)) {
    const int sum = match(*schema, args, [](std::size_t, const Value&) {});
    if (sum > best_fit) {
      best_fit = sum;
      best = schema;
    }
  }
  return best;
}

bool bind_arguments(const aten::OpSchema& schema, std::span<const Value> args, BoundArguments& bound) {
  bound.clear();
  for (const Argument& a : schema.arguments) bound.push_back(default_of(a));
  return match(schema, args, [&](std::size_t place, const Value& v) {
           const Argument& a = schema.arguments[place];
           if (a.list && a.type == Type::integer && v.is_integer())
             bound[place] = Value(Dims(1, v.integer()));
           else
             bound[place] = v;
         }) >= 0;
}

}  // namespace headroom::shadow
