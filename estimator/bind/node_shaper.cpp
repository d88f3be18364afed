#include "estimator/bind/node_shaper.h"

#include <algorithm>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/bind/contents.h"
#include "estimator/bind/size_limits.h"

namespace headroom {
namespace {

std::string described(const Model& model, ValueId id, const ShapedValue& value) {
  std::string text(model.name_of(id));
  switch (value.kind) {
    case ShapedValue::Kind::unknown:
      return text + " (no shape)";
    case ShapedValue::Kind::optional_none:
      return text + " (none)";
    case ShapedValue::Kind::sequence:
      return text + " sequence of " + std::to_string(value.elements->size());
    case ShapedValue::Kind::tensor:
      break;
  }
  return text + " " + std::string(name_of(value.dtype)) + text_of(value.dims);
}

}  // namespace

std::shared_ptr<const KnownContents> known(Integers values) {
  return std::make_shared<const KnownContents>(KnownContents{std::move(values), {}});
}
std::shared_ptr<const KnownContents> known(Reals values) {
  return std::make_shared<const KnownContents>(KnownContents{{}, std::move(values)});
}

const ShapedValue& NodeShaper::value(std::size_t i) const {
  if (!has(i)) fail("input " + std::to_string(i) + " is missing");
  const ShapedValue& v = graph_.at(node_.inputs[i]);
  if (v.kind == ShapedValue::Kind::unknown) fail("the shape of input " + std::to_string(i) + " is not known");
  return v;
}

const ShapedValue& NodeShaper::tensor(std::size_t i) const {
  const ShapedValue& v = value(i);
  if (!v.is_tensor()) fail("input " + std::to_string(i) + " is not a tensor");
  return v;
}

const Dims& NodeShaper::dims_of_rank(std::size_t i, std::size_t rank) const {
  const Dims& d = dims(i);
  if (d.size() != rank)
    fail("input " + std::to_string(i) + " must have " + std::to_string(rank) + " dimensions, not " +
         std::to_string(d.size()));
  return d;
}

const std::vector<ShapedValue>& NodeShaper::sequence(std::size_t i) const {
  const ShapedValue& v = value(i);
  if (v.kind != ShapedValue::Kind::sequence) fail("input " + std::to_string(i) + " is not a sequence");
  return *v.elements;
}

const Integers* NodeShaper::integers(std::size_t i) const {
  if (!has(i)) return nullptr;
  const ShapedValue& v = tensor(i);
  return v.contents && !is_float(v.dtype) ? &v.contents->integers : nullptr;
}

const Reals* NodeShaper::reals(std::size_t i) const {
  if (!has(i)) return nullptr;
  const ShapedValue& v = tensor(i);
  return v.contents && is_float(v.dtype) ? &v.contents->reals : nullptr;
}

const Integers& NodeShaper::needed_integers(std::size_t i, std::string_view role) const {
  tensor(i);
  const Integers* values = integers(i);
  if (!values)
    fail(std::string(role) + " (input " + std::to_string(i) + ") depends on data that only a run knows",
         "export the model so that its shapes follow from the shapes of its inputs");
  return *values;
}

std::int64_t NodeShaper::needed_integer(std::size_t i, std::string_view role) const {
  const Integers& values = needed_integers(i, role);
  if (values.size() != 1) fail(std::string(role) + " must be one number");
  return values[0];
}

std::optional<Dims> NodeShaper::attribute_or_input(std::string_view attribute, std::size_t input) const {
  if (has(input)) {
    const Integers& values = needed_integers(input, attribute);
    return Dims(values.begin(), values.end());
  }
  const Attribute* a = node_.attribute(attribute);
  if (!a) return std::nullopt;
  if (a->kind == Attribute::Kind::integer) return Dims{a->integer};
  return Dims(a->integers.begin(), a->integers.end());
}

std::size_t NodeShaper::axis(std::int64_t axis, std::size_t rank) const {
  const auto r = static_cast<std::int64_t>(rank);
  if (axis < -r || axis >= r)
    fail("axis " + std::to_string(axis) + " is outside a tensor of " + std::to_string(rank) + " dimensions");
  return static_cast<std::size_t>(axis < 0 ? axis + r : axis);
}

Dims NodeShaper::axes(std::span<const std::int64_t> axes, std::size_t rank) const {
  Dims result;
  std::vector<bool> seen(rank);
  for (const auto a : axes) {
    const std::size_t i = axis(a, rank);
    if (seen[i]) fail("axis " + std::to_string(a) + " stands twice");
    seen[i] = true;
    result.push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

std::int64_t NodeShaper::same_size(std::int64_t a, std::int64_t b, std::string_view what) const {
  if (a == b) return a;
  for (std::size_t i = 0; i < input_count(); ++i)
    if (has(i) && value(i).upper_bound) return std::min(a, b);
  fail(std::string(what) + " " + std::to_string(a) + " and " + std::to_string(b) + " differ");
}

Dims NodeShaper::broadcast(const Dims& a, const Dims& b) const {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const std::size_t skip = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& size = result[skip + i];
    if (size == 1)
      size = shorter[i];
    else if (shorter[i] != 1 && shorter[i] != size)
      size = same_size(size, shorter[i], "the shapes do not broadcast: sizes");
  }
  return result;
}

Dims NodeShaper::broadcast_inputs(std::initializer_list<std::size_t> inputs) const {
  auto i = inputs.begin();
  Dims result = dims(*i);
  for (++i; i != inputs.end(); ++i) result = broadcast(result, dims(*i));
  return result;
}

ShapedValue* NodeShaper::set(std::size_t i, DType dtype, Dims dims) const {
  const ValueId id = node_.output(i);
  if (!id.valid()) return nullptr;
  if (const std::string wrong = size_problem(dtype, dims); !wrong.empty())
    fail("output " + std::string(graph_.model->name_of(id)) + " would be " + text_of(dims) + ", " + wrong);
  ShapedValue& v = graph_.values[id.at()];
  v.kind = ShapedValue::Kind::tensor;
  v.dtype = dtype;
  v.dims = std::move(dims);
  v.contents = nullptr;
  v.elements = nullptr;
  v.upper_bound = false;
  return &v;
}

void NodeShaper::set_known(std::size_t i, DType dtype, Dims dims, Integers contents) const {
  if (ShapedValue* v = set(i, dtype, std::move(dims))) v->contents = known(std::move(contents));
}
void NodeShaper::set_known(std::size_t i, DType dtype, Dims dims, Reals contents) const {
  if (ShapedValue* v = set(i, dtype, std::move(dims))) v->contents = known(std::move(contents));
}

void NodeShaper::set_sequence(std::size_t i, DType dtype, std::vector<ShapedValue> elements) const {
  ShapedValue v;
  v.kind = ShapedValue::Kind::sequence;
  v.dtype = dtype;
  v.elements = std::make_shared<const std::vector<ShapedValue>>(std::move(elements));
  set_value(i, v);
}

void NodeShaper::set_value(std::size_t i, const ShapedValue& value) const {
  const ValueId id = node_.output(i);
  if (!id.valid()) return;
  if (!value.is_tensor()) {
    graph_.values[id.at()] = value;
  } else if (ShapedValue* out = set(i, value.dtype, value.dims)) {
    out->contents = value.contents;
    out->upper_bound = value.upper_bound;
  }
}

ShapedValue NodeShaper::value_of(const TensorData& tensor) const { return headroom::value_of(*graph_.model, tensor); }

void NodeShaper::bounded(std::string_view why) const {
  for (const ValueId id : node_.outputs)
    if (id.valid()) graph_.values[id.at()].upper_bound = true;
  graph_.diagnostics.push_back({"data-dependent-size", Severity::warning, std::string(node_.name),
                                std::string(node_.op_type) + ": " + std::string(why) + "; the largest size is taken",
                                Bytes{}});
}

std::string NodeShaper::where() const {
  std::string where = graph_.model->path.filename().string();
  if (!where.empty()) where += ", ";
  where += "node " + std::to_string(node_.index);
  if (!node_.name.empty()) where += " \"" + std::string(node_.name) + "\"";
  return where;
}

void NodeShaper::fail(const std::string& why, std::string hint) const {
  std::string what = std::string(node_.op_type) + ": " + why;
  const std::size_t shown = std::min<std::size_t>(input_count(), 8);
  for (std::size_t i = 0; i < shown; ++i) {
    what += i == 0 ? "; inputs " : ", ";
    what += has(i) ? described(*graph_.model, node_.inputs[i], graph_.at(node_.inputs[i])) : "(absent)";
  }
  if (shown < input_count()) what += ", and " + std::to_string(input_count() - shown) + " more";
  if (hint.empty())
    hint = "the shapes follow from --batch, --seq, --dim and --shape: other values may fit, else the file is wrong";
  throw bad_input(std::move(what), where(), std::move(hint));
}

}  // namespace headroom
