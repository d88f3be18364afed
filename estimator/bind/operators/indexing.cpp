// Operators that take elements out of tensors, put them in, or put tensors together.
#include <algorithm>

#include "estimator/bind/fold.h"
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

/// One coordinate list per axis, each 0, 1, ... size-1.
std::vector<Integers> all_coordinates(const Dims& dims) {
  std::vector<Integers> all;
  for (const auto d : dims) all.push_back(counted(d));
  return all;
}

Dims spliced(const Dims& d, std::size_t axis, const Dims& middle) {
  Dims result(d.begin(), d.begin() + static_cast<std::ptrdiff_t>(axis));
  result.insert(result.end(), middle.begin(), middle.end());
  result.insert(result.end(), d.begin() + static_cast<std::ptrdiff_t>(axis) + 1, d.end());
  return result;
}

/// The TorchScript exporter makes an input of a default that is a number. In transformers' language models that one is
/// 0 and keeps the logits of all positions, not those of position 0.
bool keeps_all_logits(const NodeShaper& op) {
  return op.rank(0) == 3 && op.rank(1) == 0 && op.name(1).ends_with("logits_to_keep") &&
         op.node().integer("axis", 0) == 1;
}

void gather(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  if (keeps_all_logits(op)) return op.same_shape(0, 0);
  op.require(!d.empty(), "the data is a scalar");
  const std::size_t axis = op.axis(op.node().integer("axis", 0), d.size());
  const Integers* indices = op.integers(1);
  if (indices && !op.tensor(0).upper_bound && !op.tensor(1).upper_bound)
    for (const auto i : *indices)
      if (i < -d[axis] || i >= d[axis])
        op.fail("index " + std::to_string(i) + " is outside axis " + std::to_string(axis) + " of size " +
                std::to_string(d[axis]));
  const Dims result = spliced(d, axis, op.dims(1));
  if (!indices || op.tensor(0).upper_bound) {
    op.set(0, op.dtype(0), result);
    return;
  }
  set_moved(op, 0, 0, result, [&] {
    auto coordinates = all_coordinates(d);
    coordinates[axis] = *indices;
    for (auto& i : coordinates[axis]) i += i < 0 ? d[axis] : 0;
    return picked_elements(d, coordinates);
  });
}

void gather_elements(const NodeShaper& op) {
  op.require(op.rank(0) == op.rank(1), "data and indices differ in rank");
  op.axis(op.node().integer("axis", 0), op.rank(0));
  op.set(0, op.dtype(0), op.dims(1));
}

void gather_nd(const NodeShaper& op) {
  const Dims &d = op.dims(0), &indices = op.dims(1);
  const std::int64_t batch = op.node().integer("batch_dims", 0);
  op.require(!indices.empty(), "the indices are a scalar");
  const std::int64_t depth = indices.back();
  op.require(batch >= 0 && batch < std::ssize(indices) && depth >= 0 && batch + depth <= std::ssize(d),
             "an index of " + std::to_string(depth) + " numbers does not fit the data");
  Dims result(indices.begin(), indices.end() - 1);
  result.insert(result.end(), d.begin() + batch + depth, d.end());
  const Integers* values = op.integers(1);
  if (!values || batch != 0 || depth == 0 || !op.tensor(0).contents) {
    op.set(0, op.dtype(0), result);
    return;
  }
  const Dims strides = strides_of(d);
  std::int64_t slice = 1;
  for (auto i = static_cast<std::size_t>(depth); i < d.size(); ++i) slice *= d[i];
  for (std::size_t i = 0; i < values->size(); ++i) {
    const std::int64_t size = d[i % static_cast<std::size_t>(depth)];
    op.require((*values)[i] >= -size && (*values)[i] < size, "an index is outside the data");
  }
  set_moved(op, 0, 0, result, [&] {
    Integers elements;
    for (std::size_t i = 0; i < values->size(); i += static_cast<std::size_t>(depth)) {
      std::int64_t at = 0;
      for (std::size_t a = 0; a < static_cast<std::size_t>(depth); ++a) {
        const std::int64_t v = (*values)[i + a];
        at += (v < 0 ? v + d[a] : v) * strides[a];
      }
      for (std::int64_t s = 0; s < slice; ++s) elements.push_back(at + s);
    }
    return elements;
  });
}

void scatter_elements(const NodeShaper& op) {
  op.require(op.rank(0) == op.rank(1) && op.dims(1) == op.dims(2), "data, indices and updates do not match");
  op.axis(op.node().integer("axis", 0), op.rank(0));
  op.same_shape(0, 0);
}

void scatter_nd(const NodeShaper& op) {
  const ShapedValue &data = op.tensor(0), &updates = op.tensor(2);
  const Dims& indices = op.dims(1);
  op.require(!indices.empty() && indices.back() >= 0 && indices.back() <= std::ssize(data.dims),
             "an index has more numbers than the data has dimensions");
  Dims expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.dims.begin() + indices.back(), data.dims.end());
  op.require(expected == updates.dims || op.tensor(1).upper_bound || updates.upper_bound,
             "the updates must be " + text_of(expected));
  ShapedValue* out = op.set(0, data.dtype, data.dims);
  const Integers* at = op.integers(1);
  const auto depth = static_cast<std::size_t>(indices.back());
  const bool one_dimension = data.dims.size() == 1 && depth == 1;
  if (!out || !one_dimension || !at || !data.contents || !updates.contents || is_float(data.dtype) ||
      !op.node().text("reduction", "none").starts_with("none") || at->size() != updates.contents->integers.size())
    return;
  Integers values = data.contents->integers;
  for (std::size_t i = 0; i < at->size(); ++i) {
    const std::int64_t index = (*at)[i] < 0 ? (*at)[i] + data.dims[0] : (*at)[i];
    op.require(index >= 0 && index < data.dims[0], "an index is outside the data");
    values[static_cast<std::size_t>(index)] = updates.contents->integers[i];
  }
  out->contents = known(std::move(values));
}

struct Range {
  std::int64_t start = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

/// The elements start:end:step of a dimension, with Python's clamping.
Range sliced(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto clamped = [&](std::int64_t i, std::int64_t below) {
    if (i < 0) i = i < -size ? below : i + size;
    return std::clamp(i, low, high);
  };
  Range r{clamped(start, low), step, 0};
  const std::int64_t stop = clamped(end, low);
  if (step > 0 && stop > r.start) r.count = (stop - r.start - 1) / step + 1;
  if (step < 0 && stop < r.start) r.count = step == INT64_MIN ? 1 : (r.start - stop - 1) / -step + 1;
  return r;
}

/// Slice: attributes before opset 10, inputs after.
void slice(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  const bool by_inputs = op.input_count() > 1;
  const auto list = [&](std::string_view attribute, std::size_t input) -> std::optional<Dims> {
    if (!by_inputs) return op.attribute_or_input(attribute, 99);
    const Integers* values = op.integers(input);
    return values ? std::optional(Dims(values->begin(), values->end())) : std::nullopt;
  };
  const auto starts = list("starts", 1), ends = list("ends", 2);
  auto axes = list("axes", 3), steps = list("steps", 4);
  if (!by_inputs) op.require(starts && ends, "starts or ends are missing");
  const bool axes_known = axes || !by_inputs || !op.has(3);
  const bool steps_known = steps || !by_inputs || !op.has(4);
  if (!axes_known) {
    op.same_shape(0, 0);
    return op.bounded("the axes depend on data");
  }
  const std::size_t count = axes     ? axes->size()
                            : starts ? starts->size()
                            : ends   ? ends->size()
                                     : static_cast<std::size_t>(element_count(op.dims(1)));
  op.require(count <= d.size(), "there are more starts than dimensions");
  if (!axes) {
    axes.emplace();
    for (std::size_t i = 0; i < count; ++i) axes->push_back(static_cast<std::int64_t>(i));
  }
  const Dims at = op.axes(*axes, d.size());
  if (!starts || !ends || !steps_known) {
    if (starts) op.require(starts->size() == count, "starts and axes differ in length");
    if (ends) op.require(ends->size() == count, "ends and axes differ in length");
    // With one end open the known one still limits the size.
    Dims result = d;
    for (std::size_t i = 0; i < count; ++i) {
      auto& size = result[static_cast<std::size_t>(at[i])];
      const bool forward = !op.has(4) || (steps && i < steps->size() && (*steps)[i] > 0);
      if (forward && starts) size = sliced(size, (*starts)[i], INT64_MAX, 1).count;
      if (forward && ends) size = sliced(size, 0, (*ends)[i], 1).count;
    }
    op.set(0, op.dtype(0), std::move(result));
    return op.bounded("the range depends on data");
  }
  op.require(starts->size() == count && ends->size() == count && (!steps || steps->size() == count),
             "starts, ends, axes and steps differ in length");
  Dims result = d;
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t step = steps ? (*steps)[i] : 1;
    op.require(step != 0, "a step is 0");
    const auto a = static_cast<std::size_t>(at[i]);
    ranges.push_back(sliced(d[a], (*starts)[i], (*ends)[i], step));
    result[a] = ranges.back().count;
  }
  set_moved(op, 0, 0, result, [&] {
    Dims strides = strides_of(d);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < count; ++i) {
      auto& stride = strides[static_cast<std::size_t>(at[i])];
      offset += ranges[i].start * stride;
      if (ranges[i].count > 1) stride *= ranges[i].step;
    }
    return strided_elements(result, strides, offset);
  });
}

void concat(const NodeShaper& op) {
  op.require(op.input_count() > 0, "there is no input");
  Dims result = op.dims(0);
  const std::size_t axis = op.axis(op.node().integer("axis", 1), result.size());
  bool all_known = op.tensor(0).contents != nullptr;
  bool outer_is_one = true;
  for (std::size_t i = 1; i < op.input_count(); ++i) {
    const ShapedValue& v = op.tensor(i);
    op.require(v.dims.size() == result.size(), "the inputs differ in rank");
    for (std::size_t a = 0; a < result.size(); ++a)
      result[a] =
          a == axis ? checked_add(result[a], v.dims[a]) : op.same_size(result[a], v.dims[a], "outside the axis, sizes");
    all_known = all_known && v.contents && is_float(v.dtype) == is_float(op.dtype(0));
  }
  for (std::size_t a = 0; a < axis; ++a) outer_is_one = outer_is_one && result[a] == 1;
  const DType dtype = op.dtype(0);
  if (!all_known || !outer_is_one || !foldable(dtype, result)) {
    op.set(0, dtype, std::move(result));
    return;
  }
  KnownContents contents;
  contents.integers.reserve(is_float(dtype) ? 0 : static_cast<std::size_t>(element_count(result)));
  for (std::size_t i = 0; i < op.input_count(); ++i) {
    const KnownContents& part = *op.tensor(i).contents;
    contents.integers.insert(contents.integers.end(), part.integers.begin(), part.integers.end());
    contents.reals.insert(contents.reals.end(), part.reals.begin(), part.reals.end());
  }
  if (is_float(dtype))
    op.set_known(0, dtype, std::move(result), std::move(contents.reals));
  else
    op.set_known(0, dtype, std::move(result), std::move(contents.integers));
}

/// Split: sizes by attribute before opset 13, by input after; else equal parts, `num_outputs` from opset 18.
void split(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  const std::size_t axis = op.axis(op.node().integer("axis", 0), d.size());
  const auto parts = static_cast<std::int64_t>(op.output_count());
  op.require(parts > 0, "there is no output");
  Dims sizes;
  if (const auto given = op.attribute_or_input("split", 1)) {
    sizes = *given;
    op.require(std::ssize(sizes) == parts,
               std::to_string(sizes.size()) + " sizes for " + std::to_string(parts) + " outputs");
    std::int64_t total = 0;
    for (const auto s : sizes) {
      op.require(s >= 0, "a size is negative");
      total = checked_add(total, s);
    }
    op.require(total == d[axis] || op.tensor(0).upper_bound,
               "the sizes add up to " + std::to_string(total) + ", the axis has " + std::to_string(d[axis]));
  } else {
    const std::int64_t chunk = d[axis] / parts + (d[axis] % parts != 0);
    for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(std::clamp(d[axis] - i * chunk, std::int64_t{0}, chunk));
  }
  std::int64_t start = 0;
  for (std::size_t i = 0; i < op.output_count(); ++i) {
    Dims result = d;
    result[axis] = sizes[i];
    set_moved(op, i, 0, result, [&] {
      const Dims strides = strides_of(d);
      return strided_elements(result, strides, start * strides[axis]);
    });
    start += sizes[i];
  }
}

/// Pad: `pads` (begins, then ends) by attribute before opset 11 (`paddings` in opset 1), by input after; `axes`
/// from 18.
void pad(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  auto pads = op.attribute_or_input("pads", 1);
  if (!pads) pads = op.attribute_or_input("paddings", 1);
  op.require(pads.has_value(), "there are no pads");
  Dims axes;
  if (op.has(3)) {
    const Integers& given = op.needed_integers(3, "axes");
    axes = op.axes(given, d.size());
  } else {
    for (std::size_t i = 0; i < d.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  op.require(pads->size() == 2 * axes.size(),
             std::to_string(pads->size()) + " pads for " + std::to_string(axes.size()) + " axes");
  Dims result = d;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto& size = result[static_cast<std::size_t>(axes[i])];
    size = checked_add(size, checked_add((*pads)[i], (*pads)[axes.size() + i]));
  }
  op.set(0, op.dtype(0), std::move(result));
}

void trilu(const NodeShaper& op) {
  const ShapedValue& x = op.tensor(0);
  op.require(x.dims.size() >= 2, "the input is no matrix");
  ShapedValue* out = op.set(0, x.dtype, x.dims);
  const Integers* given = op.integers(1);
  if (!out || !x.contents || (op.has(1) && (!given || given->size() != 1))) return;
  const std::int64_t k = given ? (*given)[0] : 0;
  const bool upper = op.node().integer("upper", 1) != 0;
  const std::int64_t columns = x.dims.back(), rows = x.dims[x.dims.size() - 2];
  KnownContents contents = *x.contents;
  const auto clear = [&](auto& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t row = at / columns % rows, column = at % columns;
      if (upper ? column - row < k : column - row > k) values[i] = 0;
    }
  };
  clear(contents.integers);
  clear(contents.reals);
  out->contents = std::make_shared<const KnownContents>(std::move(contents));
}

/// TopK: k by attribute before opset 10, by input after.
void top_k(const NodeShaper& op) {
  Dims result = op.dims(0);
  auto& size = result[op.axis(op.node().integer("axis", -1), result.size())];
  std::optional<std::int64_t> k;
  if (op.has(1)) {
    if (const Integers* given = op.integers(1); given && given->size() == 1) k = (*given)[0];
  } else {
    k = op.node().integer("k", -1);
  }
  if (k) {
    op.require(*k >= 0, "k is " + std::to_string(*k));
    if (*k > size && !op.tensor(0).upper_bound)
      op.fail("k is " + std::to_string(*k) + ", the axis has " + std::to_string(size));
    size = std::min(size, *k);
  }
  op.set(0, op.dtype(0), result);
  op.set(1, DType::i64, result);
  if (!k) op.bounded("k depends on data");
}

void non_zero(const NodeShaper& op) {
  const ShapedValue& x = op.tensor(0);
  const std::int64_t rank = std::ssize(x.dims);
  if (x.contents && !x.upper_bound) {
    std::vector<Integers> coordinates(x.dims.size());
    const Dims strides = strides_of(x.dims);
    const std::size_t count = static_cast<std::size_t>(element_count(x.dims));
    std::int64_t found = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (is_float(x.dtype) ? x.contents->reals[i] == 0 : x.contents->integers[i] == 0) continue;
      ++found;
      for (std::size_t a = 0; a < coordinates.size(); ++a)
        coordinates[a].push_back(static_cast<std::int64_t>(i) / strides[a] % x.dims[a]);
    }
    Integers all;
    for (const auto& c : coordinates) all.insert(all.end(), c.begin(), c.end());
    if (foldable(DType::i64, {rank, found})) return op.set_known(0, DType::i64, {rank, found}, std::move(all));
  }
  op.set(0, DType::i64, {rank, element_count(x.dims)});
  op.bounded("how many elements are not zero depends on data");
}

void unique(const NodeShaper& op) {
  Dims result = op.dims(0);
  std::int64_t count = element_count(result);
  if (const Attribute* a = op.node().attribute("axis"))
    count = result[op.axis(a->integer, result.size())];
  else
    result = {count};
  op.set(0, op.dtype(0), std::move(result));
  op.set(1, DType::i64, {count});
  op.set(2, DType::i64, {count});
  op.set(3, DType::i64, {count});
  if (count > 1) op.bounded("how many elements are unique depends on data");
}

void compress(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  const Dims& condition = op.dims_of_rank(1, 1);
  Dims result = {element_count(d)};
  std::size_t axis = 0;
  if (const Attribute* a = op.node().attribute("axis")) {
    axis = op.axis(a->integer, d.size());
    result = d;
  }
  const std::int64_t room = std::min(result[axis], condition[0]);
  if (const Integers* taken = op.integers(1)) {
    result[axis] = std::count_if(taken->begin(), taken->begin() + room, [](auto v) { return v != 0; });
    op.set(0, op.dtype(0), std::move(result));
    return;
  }
  result[axis] = room;
  op.set(0, op.dtype(0), std::move(result));
  op.bounded("how many elements are taken depends on data");
}

void reverse_sequence(const NodeShaper& op) {
  op.require(op.rank(0) >= 2, "the input has no batch and time axis");
  op.same_shape(0, 0);
}

void center_crop_pad(const NodeShaper& op) {
  Dims result = op.dims(0);
  const Integers& target = op.needed_integers(1, "the target shape");
  const auto given = op.node().integers("axes");
  const Dims axes = given.empty() ? op.axes(counted(std::ssize(result)), result.size()) : op.axes(given, result.size());
  op.require(axes.size() == target.size(), "the target shape and the axes differ in length");
  for (std::size_t i = 0; i < axes.size(); ++i) result[static_cast<std::size_t>(axes[i])] = target[i];
  op.set(0, op.dtype(0), std::move(result));
}

/// TensorScatter(past_cache, update): the cache with the update written in.
void tensor_scatter(const NodeShaper& op) {
  op.require(op.rank(0) == op.rank(1), "the cache and the update differ in rank");
  op.same_shape(0, 0);
}

constexpr OperatorRule rules[] = {
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"Scatter", scatter_elements},
    {"ScatterElements", scatter_elements},
    {"ScatterND", scatter_nd},
    {"TensorScatter", tensor_scatter},
    {"Slice", slice},
    {"Concat", concat},
    {"Split", split},
    {"Pad", pad},
    {"Trilu", trilu},
    {"TopK", top_k},
    {"NonZero", non_zero},
    {"Unique", unique},
    {"Compress", compress},
    {"ReverseSequence", reverse_sequence},
    {"CenterCropPad", center_crop_pad},
};

}  // namespace

std::span<const OperatorRule> indexing_rules() { return rules; }

}  // namespace headroom
