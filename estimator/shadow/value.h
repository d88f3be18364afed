// Value: what an argument or a result of an ATen call can be on the shadow machine.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "estimator/base/dims.h"
#include "estimator/base/dtype.h"
#include "estimator/shadow/tensor.h"

namespace headroom::shadow {

class Value;
/// Tensor[]: elements die in ascending order, as std::vector's do. (Python lists: see Machine::drop_list.)
using ValueList = std::vector<Value>;

class Value {
 public:
  using IntList = std::shared_ptr<const Dims>;
  using List = std::shared_ptr<ValueList>;

  Value() = default;  ///< None, an undefined tensor, or "argument not given"
  Value(Tensor t) {
    if (t) v_ = std::move(t);
  }
  Value(std::int64_t i) : v_(i) {}
  Value(int i) : v_(static_cast<std::int64_t>(i)) {}
  Value(double d) : v_(d) {}
  Value(bool b) : v_(b) {}
  Value(DType t) : v_(t) {}
  Value(const Dims& d) : v_(std::make_shared<const Dims>(d)) {}
  Value(std::string_view text) : v_(text) {}  ///< static or Program-owned text only
  Value(const char* text) : v_(std::string_view(text)) {}
  Value(ValueList l) : v_(std::make_shared<ValueList>(std::move(l))) {}
  Value(std::vector<Tensor> l);

  bool none() const { return std::holds_alternative<std::monostate>(v_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(v_); }
  bool is_list() const { return std::holds_alternative<List>(v_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(v_); }
  bool is_real() const { return std::holds_alternative<double>(v_); }
  bool is_bool() const { return std::holds_alternative<bool>(v_); }
  bool is_number() const { return is_integer() || is_real() || is_bool(); }
  bool is_integers() const { return std::holds_alternative<IntList>(v_); }
  bool is_dtype() const { return std::holds_alternative<DType>(v_); }
  bool is_text() const { return std::holds_alternative<std::string_view>(v_); }

  /// The tensor; undefined (empty) when this is None. Throws std::bad_variant_access on other kinds (a bug of ours).
  const Tensor& tensor() const;
  Tensor take_tensor() &&;
  const ValueList& list() const { return *std::get<List>(v_); }
  ValueList& list() { return *std::get<List>(v_); }
  std::int64_t integer() const;  ///< also from bool and integral real
  double real() const;           ///< any number
  bool boolean() const;
  const Dims& integers() const;  ///< also of an empty list
  DType dtype() const { return std::get<DType>(v_); }
  std::string_view text() const { return std::get<std::string_view>(v_); }

 private:
  std::variant<std::monostate, Tensor, List, std::int64_t, double, bool, IntList, DType, std::string_view> v_;
};

/// Results of a call, in the schema's order (a Tensor[] return is one list value).
using Outputs = boost::container::small_vector<Value, 3>;

}  // namespace headroom::shadow
