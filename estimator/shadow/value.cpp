#include "estimator/shadow/value.h"

namespace headroom::shadow {

Value::Value(std::vector<Tensor> l) {
  auto list = std::make_shared<ValueList>();
  list->reserve(l.size());
  for (Tensor& t : l) list->emplace_back(std::move(t));
  v_ = std::move(list);
}

const Tensor& Value::tensor() const {
  static const Tensor undefined;
  if (none()) return undefined;
  return std::get<Tensor>(v_);
}

Tensor Value::take_tensor() && {
  if (none()) return {};
  return std::move(std::get<Tensor>(v_));
}

std::int64_t Value::integer() const {
  if (is_bool()) return std::get<bool>(v_) ? 1 : 0;
  if (is_real()) return static_cast<std::int64_t>(std::get<double>(v_));
  return std::get<std::int64_t>(v_);
}

double Value::real() const {
  if (is_real()) return std::get<double>(v_);
  return static_cast<double>(integer());
}

bool Value::boolean() const {
  if (is_bool()) return std::get<bool>(v_);
  return integer() != 0;
}

const Dims& Value::integers() const {
  static const Dims empty;
  if (is_integers()) return *std::get<IntList>(v_);
  return empty;
}

}  // namespace headroom::shadow
