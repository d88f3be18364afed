// Sequences of tensors: what Python does with lists, no call of its own.
#include <algorithm>
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

/// The slots of a sequence, remembered under its value.
void split_to_sequence(Recovery& r) {
  std::int64_t axis = r.onnx().integer("axis", 0);
  const Dims& in = r.dims(r.in(0));
  if (axis < 0) axis += static_cast<std::int64_t>(in.size());
  const auto& elements = r.graph.value(r.out()).elements;
  if (!elements || elements->empty()) return;
  Dims sizes;
  for (const ShapedValue& e : *elements)
    sizes.push_back(static_cast<std::size_t>(axis) < e.dims.size() ? e.dims[static_cast<std::size_t>(axis)] : 1);
  Slots parts;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    parts.push_back(r.builder.slot(std::string(r.graph.name(r.out())) + "." + std::to_string(i)));
  bool even = true;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) even = even && sizes[i] == sizes[0];
  even = even && sizes.back() <= sizes[0];
  r.list_call(even ? "aten::split.Tensor" : "aten::split_with_sizes",
              {r.tensor(0), even ? Arg(sizes[0]) : Arg(sizes), axis}, parts);
  r.define_list(r.out(), parts);
}

void sequence_construct(Recovery& r) {
  Slots parts;
  for (std::size_t i = 0; i < r.onnx().inputs.size(); ++i) parts.push_back(r.tensor(i));
  r.define_list(r.out(), parts);
}

void sequence_empty(Recovery& r) { r.define_list(r.out(), {}); }

void sequence_insert(Recovery& r) {
  Slots parts = r.list(r.in(0));
  const auto at = r.has(2) ? r.graph.number(r.in(2)) : std::nullopt;
  auto place = static_cast<std::ptrdiff_t>(at.value_or(static_cast<double>(parts.size())));
  if (place < 0) place += static_cast<std::ptrdiff_t>(parts.size());
  place = std::clamp<std::ptrdiff_t>(place, 0, static_cast<std::ptrdiff_t>(parts.size()));
  parts.insert(parts.begin() + place, r.tensor(1));
  r.define_list(r.out(), parts);
}

void sequence_at(Recovery& r) {
  const Slots parts = r.list(r.in(0));
  auto index = static_cast<std::ptrdiff_t>(r.graph.number(r.in(1)).value_or(0));
  if (index < 0) index += static_cast<std::ptrdiff_t>(parts.size());
  if (index >= 0 && static_cast<std::size_t>(index) < parts.size()) {
    r.define(r.out(), parts[static_cast<std::size_t>(index)]);
  } else {
    r.tensor(r.out());
  }
}

void concat_from_sequence(Recovery& r) {
  const Slots parts = r.list(r.in(0));
  r.emit(r.onnx().integer("new_axis", 0) ? "aten::stack" : "aten::cat", {parts, r.onnx().integer("axis", 0)});
}

constexpr std::array list{
    OperatorHandler{"SplitToSequence", split_to_sequence},
    OperatorHandler{"SequenceConstruct", sequence_construct},
    OperatorHandler{"SequenceEmpty", sequence_empty},
    OperatorHandler{"SequenceInsert", sequence_insert},
    OperatorHandler{"SequenceAt", sequence_at},
    OperatorHandler{"ConcatFromSequence", concat_from_sequence},
};

}  // namespace

OperatorFamily sequence_operators() { return list; }

}  // namespace headroom::recovery
