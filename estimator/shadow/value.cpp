#include "estimator/shadow/value.h"

#include <stdexcept>

namespace headroom::shadow {

Value::Value(const Dims& d) : kind_(Kind::integers), integers_(new Integers(d)) {}

Value::Value(ValueList l) : kind_(Kind::list), list_(new List(std::move(l))) {}

Value::Value(std::vector<Tensor> l)
    : Value(ValueList(std::make_move_iterator(l.begin()), std::make_move_iterator(l.end()))) {}

void Value::refuse() { throw std::logic_error("a value of another kind"); }

const Tensor& Value::no_tensor() const {
  static const Tensor undefined;
  expect(Kind::none);
  return undefined;
}

const Dims& Value::integers() const {
  static const Dims empty;
  return is_integers() ? integers_->values : empty;
}

}  // namespace headroom::shadow
