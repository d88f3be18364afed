// A host for formulas that knows just enough shapes: element-wise operators, a few views and reductions. It writes down
// what is allocated and freed, as "A<bytes>" and "F<number of the allocation>".
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "estimator/shadow/autograd.h"
#include "estimator/shadow/recorder.h"
#include "estimator/shadow/tables/evaluate.h"

namespace headroom::shadow {

class ToyHost final : public FormulaHost {
 public:
  Tensor make(const Dims& sizes, DType dtype = DType::f32) {
    Tensor t(new TensorImpl);
    t->dtype = dtype;
    t->sizes = sizes;
    t->strides = contiguous_strides(sizes);
    t->storage = recorder_.make(storage_bytes(t->sizes, t->strides, dtype));
    return t;
  }

  Outputs call(const aten::OpSchema& op, std::span<const Value> args) override {
    calls += (calls.empty() ? "" : " ") + std::string(op.name);
    if (op.in_place || op.base == "to") return {args[0]};  // always to the dtype that it has
    if (op.base == "zeros" || op.base == "new_zeros") return {Value(make(args[op.base == "zeros" ? 0 : 1].integers()))};
    if (op.base == "scalar_tensor") return {Value(make({}))};
    if (op.base == "sum" || op.base == "mean" || op.base == "any") return {Value(reduced(op, args))};
    if (op.base == "cat" || op.base == "stack") return {Value(make(joined(op, args)))};
    if (op.base == "unsqueeze" || op.base == "expand" || op.base == "slice") return {Value(viewed(op, args))};
    if (op.base == "narrow") {
      const std::array<Value, 5> slice{args[0], args[1], args[2], args[2], args[3]};
      return {Value(viewed(op, slice))};
    }
    return {Value(elementwise(op, args))};
  }

  /// Events since the last call of this.
  std::string events() {
    std::string s;
    for (; seen_ < trace_.events.size(); ++seen_) {
      const TraceEvent& e = trace_.events[seen_];
      if (e.kind != TraceEvent::Kind::alloc && e.kind != TraceEvent::Kind::free) continue;
      if (e.kind == TraceEvent::Kind::alloc) {
        if (first_ < 0) first_ = e.index;
        s += (s.empty() ? "A" : " A") + std::to_string(trace_.blocks[static_cast<std::size_t>(e.index)].bytes.count());
      } else {
        s += (s.empty() ? "F" : " F") + std::to_string(e.index - first_);
      }
    }
    first_ = -1;
    return s;
  }

  std::string calls;

 private:
  static bool compares(std::string_view base) {
    static constexpr std::array<std::string_view, 9> names{"eq", "ne",          "lt",         "le",         "gt",
                                                           "ge", "logical_and", "logical_or", "logical_not"};
    return std::find(names.begin(), names.end(), base) != names.end();
  }

  Tensor elementwise(const aten::OpSchema& op, std::span<const Value> args) {
    Dims sizes;
    DType dtype = DType::undefined;
    for (const Value& v : args) {
      if (!v.is_tensor()) continue;
      const TensorImpl& t = *v.tensor();
      if (dtype == DType::undefined || (dtype == DType::b8 && t.dtype != DType::b8)) dtype = t.dtype;
      if (t.sizes.size() > sizes.size()) sizes.insert(sizes.begin(), t.sizes.size() - sizes.size(), 1);
      for (std::size_t i = 0; i < t.sizes.size(); ++i) {
        std::int64_t& d = sizes[sizes.size() - t.sizes.size() + i];
        d = std::max(d, t.sizes[i]);
      }
    }
    return make(sizes, compares(op.base) ? DType::b8 : dtype);
  }

  Tensor reduced(const aten::OpSchema& op, std::span<const Value> args) {
    const TensorImpl& t = *args[0].tensor();
    const DType dtype = op.base == "any" ? DType::b8 : t.dtype == DType::b8 ? DType::i64 : t.dtype;
    if (op.overload.empty()) return make({}, dtype);
    Dims sizes = t.sizes;
    for (const std::int64_t d : args[1].integers()) sizes[wrap(d, t)] = args[2].boolean() ? 1 : -1;
    sizes.erase(std::remove(sizes.begin(), sizes.end(), -1), sizes.end());
    return make(sizes, dtype);
  }

  static Dims joined(const aten::OpSchema& op, std::span<const Value> args) {
    const ValueList& all = args[0].list();
    Dims sizes = all[0].tensor()->sizes;
    const auto dim = static_cast<std::size_t>(args[1].integer());
    if (op.base == "stack") {
      sizes.insert(sizes.begin() + args[1].integer(), static_cast<std::int64_t>(all.size()));
    } else {
      sizes[dim] = 0;
      for (const Value& v : all) sizes[dim] += v.tensor()->sizes[dim];
    }
    return sizes;
  }

  static std::size_t wrap(std::int64_t d, const TensorImpl& t) {
    return static_cast<std::size_t>(d < 0 ? d + static_cast<std::int64_t>(t.dim()) : d);
  }

  Tensor viewed(const aten::OpSchema& op, std::span<const Value> args) {
    Tensor v(new TensorImpl);
    const TensorImpl& t = *args[0].tensor();
    v->dtype = t.dtype;
    v->storage = t.storage;
    v->base = args[0].tensor();
    v->sizes = t.sizes;
    if (op.base == "expand") {
      v->sizes = args[1].integers();
    } else if (op.base == "unsqueeze") {
      const std::int64_t at = args[1].integer();
      v->sizes.insert(v->sizes.begin() + (at < 0 ? at + static_cast<std::int64_t>(t.dim()) + 1 : at), 1);
    } else {
      v->sizes[wrap(args[1].integer(), t)] = args[4].integer();
    }
    v->strides = contiguous_strides(v->sizes);
    return v;
  }

  Trace trace_;
  Recorder recorder_{trace_};
  std::size_t seen_ = 0;
  std::int32_t first_ = -1;
};

}  // namespace headroom::shadow
