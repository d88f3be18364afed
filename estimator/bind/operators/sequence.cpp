// Sequences and optionals.
#include <algorithm>

#include "estimator/bind/fold.h"
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

constexpr std::int64_t most_elements = 65536;

DType sequence_type(const NodeShaper& op) {
  const std::int64_t code = op.node().integer("dtype", 1);
  op.require(known_dtype(code), "the type " + std::to_string(code) + " is no ONNX type");
  return static_cast<DType>(code);
}

void sequence_empty(const NodeShaper& op) { op.set_sequence(0, sequence_type(op), {}); }

void sequence_construct(const NodeShaper& op) {
  std::vector<ShapedValue> elements;
  for (std::size_t i = 0; i < op.input_count(); ++i) elements.push_back(op.tensor(i));
  op.set_sequence(0, op.dtype(0), std::move(elements));
}

/// Position `input` in a sequence of `size`, `last` when absent, nullopt when it depends on data.
std::optional<std::int64_t> position(const NodeShaper& op, std::size_t input, std::int64_t size, std::int64_t last) {
  if (!op.has(input)) return last;
  const Integers* given = op.integers(input);
  if (!given || given->size() != 1) return std::nullopt;
  const std::int64_t at = (*given)[0] < 0 ? (*given)[0] + size : (*given)[0];
  op.require(at >= 0 && at <= last,
             "position " + std::to_string((*given)[0]) + " is outside a sequence of " + std::to_string(size));
  return at;
}

/// The element with the most bytes.
const ShapedValue& largest(const std::vector<ShapedValue>& elements) {
  return *std::max_element(elements.begin(), elements.end(),
                           [](const auto& a, const auto& b) { return a.count() < b.count(); });
}

void sequence_at(const NodeShaper& op) {
  const auto& elements = op.sequence(0);
  const std::int64_t size = std::ssize(elements);
  op.require(size > 0, "the sequence is empty");
  if (const auto at = position(op, 1, size, size - 1)) {
    op.set_value(0, elements[static_cast<std::size_t>(*at)]);
    return;
  }
  ShapedValue any = largest(elements);
  any.contents = nullptr;
  op.set_value(0, any);
  const bool alike = std::all_of(elements.begin(), elements.end(), [&](const auto& e) { return e.dims == any.dims; });
  if (!alike) op.bounded("which element is taken depends on data");
}

void sequence_insert(const NodeShaper& op) {
  auto elements = op.sequence(0);
  const std::int64_t size = std::ssize(elements);
  op.require(size < most_elements, "the sequence has too many elements");
  const auto at = position(op, 2, size, size).value_or(size);
  elements.insert(elements.begin() + at, op.tensor(1));
  op.set_sequence(0, op.dtype(1), std::move(elements));
}

void sequence_erase(const NodeShaper& op) {
  auto elements = op.sequence(0);
  const std::int64_t size = std::ssize(elements);
  op.require(size > 0, "the sequence is empty");
  const auto at = position(op, 1, size, size - 1).value_or(size - 1);
  elements.erase(elements.begin() + at);
  op.set_sequence(0, op.value(0).dtype, std::move(elements));
}

void sequence_length(const NodeShaper& op) { op.set_known(0, DType::i64, {}, Integers{std::ssize(op.sequence(0))}); }

/// SplitToSequence(input, split): a scalar is the size of every part, a list the sizes; none: parts of one, their axis
/// gone with keepdims = 0.
void split_to_sequence(const NodeShaper& op) {
  const ShapedValue& x = op.tensor(0);
  const std::size_t axis = op.axis(op.node().integer("axis", 0), x.dims.size());
  const std::int64_t size = x.dims[axis];
  Dims sizes;
  if (op.has(1) && !op.dims(1).empty()) {
    const Integers& given = op.needed_integers(1, "the sizes");
    sizes.assign(given.begin(), given.end());
    std::int64_t total = 0;
    for (const auto s : sizes) {
      op.require(s >= 0, "a size is negative");
      total = checked_add(total, s);
    }
    op.require(total == size,
               "the sizes add up to " + std::to_string(total) + ", the axis has " + std::to_string(size));
  } else {
    const std::int64_t part = op.has(1) ? op.needed_integer(1, "the size") : 1;
    op.require(part > 0, "the size of a part is not positive");
    op.require(size / part < most_elements, "the sequence would have too many elements");
    for (std::int64_t done = 0; done < size; done += part) sizes.push_back(std::min(part, size - done));
  }
  const bool drop = !op.has(1) && op.node().integer("keepdims", 1) == 0;
  std::vector<ShapedValue> elements;
  for (const auto s : sizes) {
    ShapedValue e;
    e.kind = ShapedValue::Kind::tensor;
    e.dtype = x.dtype;
    e.dims = x.dims;
    e.dims[axis] = s;
    if (drop) e.dims.erase(e.dims.begin() + static_cast<std::ptrdiff_t>(axis));
    elements.push_back(std::move(e));
  }
  if (x.contents && x.dims.size() == 1 && !drop) {
    std::ptrdiff_t start = 0;
    for (auto& e : elements) {
      KnownContents part;
      const auto cut = [&](const auto& all, auto& out) {
        if (!all.empty()) out.assign(all.begin() + start, all.begin() + start + e.dims[0]);
      };
      cut(x.contents->integers, part.integers);
      cut(x.contents->reals, part.reals);
      e.contents = std::make_shared<const KnownContents>(std::move(part));
      start += e.dims[0];
    }
  }
  op.set_sequence(0, x.dtype, std::move(elements));
}

void concat_from_sequence(const NodeShaper& op) {
  const auto& elements = op.sequence(0);
  op.require(!elements.empty(), "the sequence is empty");
  const bool stack = op.node().integer("new_axis", 0) != 0;
  Dims result = elements[0].dims;
  const std::size_t axis = op.axis(op.node().integer("axis", 0), result.size() + (stack ? 1 : 0));
  std::int64_t total = 0;
  for (const auto& e : elements) {
    op.require(e.dims.size() == elements[0].dims.size(), "the elements differ in rank");
    for (std::size_t a = 0; a < e.dims.size(); ++a)
      if (stack || a != axis) result[a] = op.same_size(result[a], e.dims[a], "the elements' sizes");
    total = checked_add(total, stack ? 1 : e.dims[axis]);
  }
  if (stack)
    result.insert(result.begin() + static_cast<std::ptrdiff_t>(axis), total);
  else
    result[axis] = total;
  op.set(0, elements[0].dtype, std::move(result));
}

/// Optional(x): x, or none.
void optional(const NodeShaper& op) {
  if (op.has(0)) return op.pass(0, 0);
  ShapedValue none;
  none.kind = ShapedValue::Kind::optional_none;
  op.set_value(0, none);
}

void optional_get(const NodeShaper& op) {
  op.require(op.value(0).kind != ShapedValue::Kind::optional_none, "the optional is empty");
  op.pass(0, 0);
}

void optional_has(const NodeShaper& op) {
  const bool there = op.has(0) && op.value(0).kind != ShapedValue::Kind::optional_none;
  op.set_known(0, DType::b8, {}, Integers{there});
}

constexpr OperatorRule rules[] = {
    {"SequenceEmpty", sequence_empty},
    {"SequenceConstruct", sequence_construct},
    {"SequenceAt", sequence_at},
    {"SequenceInsert", sequence_insert},
    {"SequenceErase", sequence_erase},
    {"SequenceLength", sequence_length},
    {"SplitToSequence", split_to_sequence},
    {"ConcatFromSequence", concat_from_sequence},
    {"Optional", optional},
    {"OptionalGetElement", optional_get},
    {"OptionalHasElement", optional_has},
};

}  // namespace

std::span<const OperatorRule> sequence_rules() { return rules; }

}  // namespace headroom
