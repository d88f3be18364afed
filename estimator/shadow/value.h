// Value: what an argument or a result of an ATen call can be on the shadow machine.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <string_view>
#include <utility>
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
  enum class Kind : std::uint8_t { none, tensor, list, integers, integer, real, boolean, dtype, text };

  Value() {}  ///< None, an undefined tensor, or "argument not given"
  Value(Tensor t) {
    if (!t) return;
    kind_ = Kind::tensor;
    new (&tensor_) Tensor(std::move(t));
  }
  Value(std::int64_t i) : kind_(Kind::integer), integer_(i) {}
  Value(int i) : Value(static_cast<std::int64_t>(i)) {}
  Value(double d) : kind_(Kind::real), real_(d) {}
  Value(bool b) : kind_(Kind::boolean), integer_(b) {}
  Value(DType t) : kind_(Kind::dtype), integer_(static_cast<std::int64_t>(t)) {}
  Value(const Dims& d);
  Value(std::string_view text)  ///< static or Program-owned text only
      : kind_(Kind::text), length_(static_cast<std::uint32_t>(text.size())), text_(text.data()) {}
  Value(const char* text) : Value(std::string_view(text)) {}
  Value(ValueList l);
  Value(std::vector<Tensor> l);

  Value(const Value& o) : kind_(o.kind_), length_(o.length_) { copy(o); }
  Value(Value&& o) noexcept : kind_(o.kind_), length_(o.length_) { take(o); }
  Value& operator=(const Value& o) {
    Value copied(o);
    return *this = std::move(copied);
  }
  /// What was held goes once the new value is in place.
  Value& operator=(Value&& o) noexcept {
    if (this == &o) return *this;
    if (counted()) {
      const Value old(std::move(*this));
      return *this = std::move(o);
    }
    kind_ = o.kind_;
    length_ = o.length_;
    take(o);
    return *this;
  }
  ~Value() {
    if (counted()) clear();
  }

  Kind kind() const { return kind_; }
  bool none() const { return kind_ == Kind::none; }
  bool is_tensor() const { return kind_ == Kind::tensor; }
  bool is_list() const { return kind_ == Kind::list; }
  bool is_integer() const { return kind_ == Kind::integer; }
  bool is_real() const { return kind_ == Kind::real; }
  bool is_bool() const { return kind_ == Kind::boolean; }
  bool is_number() const { return is_integer() || is_real() || is_bool(); }
  bool is_integers() const { return kind_ == Kind::integers; }
  bool is_dtype() const { return kind_ == Kind::dtype; }
  bool is_text() const { return kind_ == Kind::text; }

  // A kind that is asked for and not there is a bug of ours: std::logic_error.

  /// The tensor; undefined (empty) when this is None.
  const Tensor& tensor() const {
    if (kind_ == Kind::tensor) return tensor_;
    return no_tensor();
  }
  Tensor take_tensor() && {
    if (none()) return {};
    expect(Kind::tensor);
    return std::move(tensor_);
  }
  const ValueList& list() const {
    expect(Kind::list);
    return list_->values;
  }
  ValueList& list() {
    expect(Kind::list);
    return list_->values;
  }
  std::int64_t integer() const {  ///< also from bool and integral real
    if (is_integer() || is_bool()) return integer_;
    expect(Kind::real);
    return static_cast<std::int64_t>(real_);
  }
  double real() const { return is_real() ? real_ : static_cast<double>(integer()); }  ///< any number
  bool boolean() const { return integer() != 0; }
  const Dims& integers() const;  ///< also of an empty list
  DType dtype() const {
    expect(Kind::dtype);
    return static_cast<DType>(integer_);
  }
  std::string_view text() const {
    expect(Kind::text);
    return {text_, length_};
  }

 private:
  struct List {
    explicit List(ValueList v) : values(std::move(v)) {}
    std::uint32_t owners = 0;
    ValueList values;
    static void destroy(List* l) { delete l; }
  };
  struct Integers {
    explicit Integers(const Dims& d) : values(d) {}
    std::uint32_t owners = 0;
    Dims values;
    static void destroy(Integers* i) { delete i; }
  };

  bool counted() const { return kind_ >= Kind::tensor && kind_ <= Kind::integers; }
  void expect(Kind kind) const {
    if (kind_ != kind) refuse();
  }
  [[noreturn]] static void refuse();
  const Tensor& no_tensor() const;

  void copy(const Value& o) {
    switch (kind_) {
      case Kind::tensor:
        new (&tensor_) Tensor(o.tensor_);
        break;
      case Kind::list:
        new (&list_) Ref<List>(o.list_);
        break;
      case Kind::integers:
        new (&integers_) Ref<Integers>(o.integers_);
        break;
      default:
        copy_plain(o);
    }
  }
  void take(Value& o) {
    switch (kind_) {
      case Kind::tensor:
        new (&tensor_) Tensor(std::move(o.tensor_));
        break;
      case Kind::list:
        new (&list_) Ref<List>(std::move(o.list_));
        break;
      case Kind::integers:
        new (&integers_) Ref<Integers>(std::move(o.integers_));
        break;
      default:
        copy_plain(o);
    }
    o.kind_ = Kind::none;
  }
  void copy_plain(const Value& o) {
    if (kind_ == Kind::real)
      real_ = o.real_;
    else if (kind_ == Kind::text)
      text_ = o.text_;
    else
      integer_ = o.integer_;
  }
  void clear() {
    switch (kind_) {
      case Kind::tensor:
        tensor_.~Tensor();
        break;
      case Kind::list:
        list_.~Ref();
        break;
      case Kind::integers:
        integers_.~Ref();
        break;
      default:
        break;
    }
  }

  Kind kind_ = Kind::none;
  std::uint32_t length_ = 0;  ///< of a text
  union {
    std::int64_t integer_ = 0;
    double real_;
    const char* text_;
    Tensor tensor_;
    Ref<List> list_;
    Ref<Integers> integers_;
  };
};

/// Results of a call, in the schema's order (a Tensor[] return is one list value).
using Outputs = boost::container::small_vector<Value, 3>;

}  // namespace headroom::shadow
