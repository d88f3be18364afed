// Operators that make tensors: constants, ranges, random numbers, one-hot codes.
#include <cmath>

#include "estimator/bind/fold.h"
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

DType type_attribute(const NodeShaper& op, std::string_view attribute, DType fallback) {
  const std::int64_t code = op.node().integer(attribute, static_cast<std::int64_t>(fallback));
  if (!known_dtype(code)) op.fail("the type " + std::to_string(code) + " is no ONNX type");
  return static_cast<DType>(code);
}

/// `count` copies of the one element that `value` holds.
void set_filled(const NodeShaper& op, DType dtype, Dims dims, const KnownContents* value) {
  ShapedValue* out = op.set(0, dtype, std::move(dims));
  if (!out || !value || !foldable(dtype, out->dims)) return;
  const auto count = static_cast<std::size_t>(element_count(out->dims));
  if (is_float(dtype) && value->reals.size() == 1) out->contents = known(Reals(count, value->reals[0]));
  if (!is_float(dtype) && value->integers.size() == 1) out->contents = known(Integers(count, value->integers[0]));
}

void constant(const NodeShaper& op) {
  for (const Attribute& a : op.node().attributes) {
    if (a.name == "value" && a.tensor) return op.set_value(0, op.value_of(*a.tensor));
    if (a.name == "sparse_value" && a.tensor) return op.set_value(0, op.value_of(*a.tensor));
    if (a.name == "value_int") return op.set_known(0, DType::i64, {}, Integers{a.integer});
    if (a.name == "value_float") return op.set_known(0, DType::f32, {}, Reals{a.real});
    if (a.name == "value_ints" || a.name == "value_floats") {
      const bool reals = a.name == "value_floats";
      const Dims dims{static_cast<std::int64_t>(reals ? a.reals.size() : a.integers.size())};
      const DType dtype = reals ? DType::f32 : DType::i64;
      if (!foldable(dtype, dims)) {
        op.set(0, dtype, dims);
      } else if (reals) {
        op.set_known(0, dtype, dims, Reals(a.reals.begin(), a.reals.end()));
      } else {
        op.set_known(0, dtype, dims, Integers(a.integers.begin(), a.integers.end()));
      }
      return;
    }
    if (a.name == "value_string") {
      op.set(0, DType::string, {});
      return;
    }
    if (a.name == "value_strings") {
      op.set(0, DType::string, {static_cast<std::int64_t>(a.texts.size())});
      return;
    }
  }
  op.fail("there is no value");
}

void constant_of_shape(const NodeShaper& op) {
  const Integers& shape = op.needed_integers(0, "the shape");
  const Attribute* a = op.node().attribute("value");
  const Dims dims(shape.begin(), shape.end());
  if (!a || !a->tensor) {
    const KnownContents zero{{}, {0.0}};
    return set_filled(op, DType::f32, dims, &zero);
  }
  const ShapedValue value = op.value_of(*a->tensor);
  set_filled(op, value.dtype, dims, value.contents.get());
}

/// Range(start, limit, delta): max(ceil((limit - start) / delta), 0) elements.
void range(const NodeShaper& op) {
  const ShapedValue &start = op.tensor(0), &limit = op.tensor(1), &delta = op.tensor(2);
  if (const auto step = delta.number()) op.require(*step != 0, "the step is 0");
  const auto a = start.integer(), b = limit.integer(), s = delta.integer();
  if (a && b && s) {
    __extension__ using Wide = __int128;
    const Wide distance = static_cast<Wide>(*b) - *a;
    const Wide steps = distance / *s + (distance % *s != 0 && (distance > 0) == (*s > 0));
    const Wide count = steps > 0 ? steps : Wide{0};
    op.require(count <= INT64_MAX, "the range has more elements than 64 bits can count");
    const Dims dims{static_cast<std::int64_t>(count)};
    ShapedValue* out = op.set(0, start.dtype, dims);
    if (!out || !foldable(start.dtype, dims)) return;
    Integers values = counted(dims[0]);
    for (auto& v : values)  // the products may leave 64 bits, the sums do not
      v = static_cast<std::int64_t>(static_cast<Wide>(*a) + static_cast<Wide>(v) * *s);
    out->contents = known(std::move(values));
    return;
  }
  const auto x = start.number(), y = limit.number(), z = delta.number();
  if (!x || !y || !z)
    op.fail("its length depends on data that only a run knows",
            "export the model so that its shapes follow from the shapes of its inputs");
  const double count = std::ceil((*y - *x) / *z);
  op.require(count < 9e18, "the range has more elements than 64 bits can count");
  const Dims dims{count > 0 ? static_cast<std::int64_t>(count) : 0};
  ShapedValue* out = op.set(0, start.dtype, dims);
  if (!out || !foldable(start.dtype, dims)) return;
  Reals values(static_cast<std::size_t>(dims[0]));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = rounded(start.dtype, *x + static_cast<double>(i) * *z);
  out->contents = known(std::move(values));
}

void eye_like(const NodeShaper& op) { op.set(0, type_attribute(op, "dtype", op.dtype(0)), op.dims_of_rank(0, 2)); }

void random_like(const NodeShaper& op) { op.set(0, type_attribute(op, "dtype", op.dtype(0)), op.dims(0)); }

void random(const NodeShaper& op) {
  const auto shape = op.node().integers("shape");
  op.set(0, type_attribute(op, "dtype", DType::f32), Dims(shape.begin(), shape.end()));
}

void multinomial(const NodeShaper& op) {
  const Dims& d = op.dims_of_rank(0, 2);
  op.set(0, type_attribute(op, "dtype", DType::i32), {d[0], op.node().integer("sample_size", 1)});
}

/// The numbers of a one-hot tensor whose rows are last: repeats of an axis are made so (torch.repeat_interleave).
std::optional<Integers> one_hot_contents(const NodeShaper& op, std::size_t axis, std::int64_t depth) {
  const Integers *indices = op.integers(0), *values = op.integers(2);
  if (!indices || !values || values->size() != 2 || axis != op.rank(0) ||
      depth > max_folded_integers / std::max<std::int64_t>(std::ssize(*indices), 1))
    return std::nullopt;
  Integers out;
  for (const std::int64_t index : *indices)
    for (std::int64_t i = 0; i < depth; ++i) out.push_back((*values)[i == index || i == index + depth ? 1 : 0]);
  return out;
}

/// OneHot(indices, depth, values).
void one_hot(const NodeShaper& op) {
  const ShapedValue& depth = op.tensor(1);
  const auto number = depth.number();
  if (!number) op.fail("the depth depends on data that only a run knows");
  op.require(*number >= 0 && *number < 9e18, "the depth is no size");
  Dims result = op.dims(0);
  const std::size_t axis = op.axis(op.node().integer("axis", -1), result.size() + 1);
  const auto size = static_cast<std::int64_t>(*number);
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis), size);
  if (auto contents = one_hot_contents(op, axis, size)) {
    op.set_known(0, op.dtype(2), std::move(result), std::move(*contents));
  } else {
    op.set(0, op.dtype(2), std::move(result));
  }
}

constexpr OperatorRule rules[] = {
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"Range", range},
    {"EyeLike", eye_like},
    {"Bernoulli", random_like},
    {"RandomNormalLike", random_like},
    {"RandomUniformLike", random_like},
    {"RandomNormal", random},
    {"RandomUniform", random},
    {"Multinomial", multinomial},
    {"OneHot", one_hot},
};

}  // namespace

std::span<const OperatorRule> generator_rules() { return rules; }

}  // namespace headroom
