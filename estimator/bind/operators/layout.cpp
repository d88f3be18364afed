// Operators that ask for a shape or give the same elements another one.
#include <algorithm>

#include "estimator/bind/fold.h"
#include "estimator/bind/operators/families.h"

namespace headroom {
namespace {

/// Shape(data), with `start` and `end` from opset 15.
void shape(const NodeShaper& op) {
  const Dims& dims = op.dims(0);
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto clamped = [rank](std::int64_t i) { return std::clamp(i < 0 ? i + rank : i, std::int64_t{0}, rank); };
  const std::int64_t start = clamped(op.node().integer("start", 0));
  const std::int64_t end = std::max(start, clamped(op.node().integer("end", rank)));
  op.set_known(0, DType::i64, {end - start}, Integers(dims.begin() + start, dims.begin() + end));
}

void size(const NodeShaper& op) { op.set_known(0, DType::i64, {}, Integers{element_count(op.dims(0))}); }

/// The target of a Reshape with its 0 ("as the input") and its -1 ("the rest") resolved.
Dims resolved_target(const NodeShaper& op, const Dims& from, const Dims& target, bool zero_is_zero) {
  Dims result = target;
  std::optional<std::size_t> rest;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 0 && !zero_is_zero) {
      op.require(i < from.size(), "the target copies a dimension that the input does not have");
      result[i] = from[i];
    } else if (result[i] == -1) {
      if (rest) op.fail("the target " + text_of(target) + " has more than one -1");
      rest = i;
    } else {
      if (result[i] < 0) op.fail("the target " + text_of(target) + " has a negative dimension");
    }
  }
  if (!rest) return result;
  result[*rest] = 1;
  const std::int64_t others = element_count(result);
  const std::int64_t all = element_count(from);
  if (others == 0) {
    result[*rest] = 0;
    return result;
  }
  if (all % others != 0 && !op.tensor(0).upper_bound)
    op.fail(std::to_string(all) + " elements do not divide into " + text_of(target));
  result[*rest] = (all + others - 1) / others;
  return result;
}

void reshape(const NodeShaper& op) {
  const Dims& from = op.dims(0);
  if (op.has(1) && !op.integers(1)) {
    // A target of one element can only be "all in one dimension".
    if (op.dims(1) == Dims{1}) return set_reshaped(op, 0, 0, {element_count(from)});
  }
  const auto target = op.attribute_or_input("shape", 1);
  op.require(target.has_value(), "there is no target shape");
  Dims to = resolved_target(op, from, *target, op.node().integer("allowzero", 0) != 0);
  const bool bound = op.tensor(0).upper_bound || (op.has(1) && op.tensor(1).upper_bound);
  if (!bound && element_count(from) != element_count(to))
    op.fail(std::to_string(element_count(from)) + " elements cannot become " + text_of(*target));
  set_reshaped(op, 0, 0, std::move(to));
}

void flatten(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  const auto rank = static_cast<std::int64_t>(d.size());
  std::int64_t axis = op.node().integer("axis", 1);
  if (axis < 0) axis += rank;
  op.require(axis >= 0 && axis <= rank,
             "axis " + std::to_string(op.node().integer("axis", 1)) + " is outside the input");
  const Dims outer(d.begin(), d.begin() + axis), inner(d.begin() + axis, d.end());
  set_reshaped(op, 0, 0, {element_count(outer), element_count(inner)});
}

void squeeze(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  const auto given = op.attribute_or_input("axes", 1);
  std::vector<bool> gone(d.size());
  if (given)
    for (const auto a : op.axes(*given, d.size())) {
      const auto i = static_cast<std::size_t>(a);
      // torch.squeeze leaves other dimensions alone; its exporter writes a Squeeze all the same.
      const bool left_alone = d[i] != 1 && op.node().metadata.fx_node.find("aten.squeeze") != std::string_view::npos;
      if (d[i] != 1 && !left_alone && !op.tensor(0).upper_bound)
        op.fail("dimension " + std::to_string(a) + " is " + std::to_string(d[i]) + ", not 1");
      gone[i] = !left_alone;
    }
  else
    for (std::size_t i = 0; i < d.size(); ++i) gone[i] = d[i] == 1;
  Dims result;
  for (std::size_t i = 0; i < d.size(); ++i)
    if (!gone[i]) result.push_back(d[i]);
  set_reshaped(op, 0, 0, std::move(result));
}

void unsqueeze(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  const auto given = op.attribute_or_input("axes", 1);
  op.require(given.has_value(), "there are no axes");
  const std::size_t rank = d.size() + given->size();
  std::vector<bool> fresh(rank);
  for (const auto a : op.axes(*given, rank)) fresh[static_cast<std::size_t>(a)] = true;
  Dims result(rank, 1);
  auto next = d.begin();
  for (std::size_t i = 0; i < rank; ++i)
    if (!fresh[i]) result[i] = *next++;
  set_reshaped(op, 0, 0, std::move(result));
}

void transpose(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  Dims perm;
  if (const auto given = op.node().integers("perm"); !given.empty()) {
    if (given.size() != d.size())
      op.fail("perm has " + std::to_string(given.size()) + " axes for a tensor of " + std::to_string(d.size()) +
              " dimensions");
    perm = op.axes(given, d.size());
  } else {
    for (std::size_t i = d.size(); i-- > 0;) perm.push_back(static_cast<std::int64_t>(i));
  }
  Dims result;
  for (const auto p : perm) result.push_back(d[static_cast<std::size_t>(p)]);
  set_moved(op, 0, 0, result, [&] {
    const Dims own = strides_of(d);
    Dims strides;
    for (const auto p : perm) strides.push_back(own[static_cast<std::size_t>(p)]);
    return strided_elements(result, strides);
  });
}

void expand(const NodeShaper& op) {
  const Integers& target = op.needed_integers(1, "the target shape");
  Dims result = op.broadcast(op.dims(0), Dims(target.begin(), target.end()));
  set_moved(op, 0, 0, result, [&] { return broadcast_elements(op.dims(0), result); });
}

void tile(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  const Integers& repeats = op.needed_integers(1, "the number of repeats");
  op.require(repeats.size() == d.size(),
             std::to_string(repeats.size()) + " repeats for a tensor of " + std::to_string(d.size()) + " dimensions");
  Dims result = d;
  for (std::size_t i = 0; i < d.size(); ++i) {
    op.require(repeats[i] >= 0, "a repeat is negative");
    result[i] = checked_mul(d[i], repeats[i]);
  }
  set_moved(op, 0, 0, result, [&] {
    std::vector<Integers> coordinates;
    for (std::size_t i = 0; i < d.size(); ++i) {
      coordinates.push_back(counted(result[i]));
      for (auto& c : coordinates.back()) c %= d[i];
    }
    return picked_elements(d, coordinates);
  });
}

void identity(const NodeShaper& op) { op.pass(0, 0); }

void depth_to_space(const NodeShaper& op) {
  const Dims& d = op.dims_of_rank(0, 4);
  const std::int64_t b = op.node().integer("blocksize", 0);
  op.require(b > 0 && b < 1 << 20 && d[1] % (b * b) == 0, "the channels do not divide by the square of the block size");
  op.set(0, op.dtype(0), {d[0], d[1] / (b * b), checked_mul(d[2], b), checked_mul(d[3], b)});
}

void space_to_depth(const NodeShaper& op) {
  const Dims& d = op.dims_of_rank(0, 4);
  const std::int64_t b = op.node().integer("blocksize", 0);
  op.require(b > 0 && b < 1 << 20 && d[2] % b == 0 && d[3] % b == 0,
             "height or width does not divide by the block size");
  op.set(0, op.dtype(0), {d[0], checked_mul(d[1], b * b), d[2] / b, d[3] / b});
}

constexpr OperatorRule rules[] = {
    {"Shape", shape},
    {"Size", size},
    {"Reshape", reshape},
    {"Flatten", flatten},
    {"Squeeze", squeeze},
    {"Unsqueeze", unsqueeze},
    {"Transpose", transpose},
    {"Expand", expand},
    {"Tile", tile},
    {"Identity", identity},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
};

}  // namespace

std::span<const OperatorRule> layout_rules() { return rules; }

}  // namespace headroom
