#include "estimator/allocate/plain_data.h"

#include <utility>

namespace headroom {

const std::vector<PlainValue>& PlainData::items(const PlainValue& list) const {
  static const std::vector<PlainValue> empty;
  return list.is_list() ? containers_[list.container] : empty;
}

PlainValue PlainData::get(const PlainValue& dict, std::string_view key) const {
  if (!dict.is_dict()) return {};
  const std::vector<PlainValue>& entries = containers_[dict.container];
  for (std::size_t i = entries.size() / 2; i-- > 0;) {
    if (entries[2 * i].as_text() == key) return entries[2 * i + 1];
  }
  return {};
}

PlainValue PlainData::add_text(std::string_view text) { return make_text(texts_.emplace_back(text)); }

PlainValue PlainData::add_list(std::vector<PlainValue> items) {
  PlainValue value;
  value.kind = PlainValue::Kind::list;
  value.container = static_cast<std::uint32_t>(containers_.size());
  containers_.push_back(std::move(items));
  return value;
}

PlainValue PlainData::add_dict(std::vector<PlainValue> entries) {
  PlainValue value = add_list(std::move(entries));
  value.kind = PlainValue::Kind::dict;
  return value;
}

PlainValue PlainData::make_integer(std::int64_t n) {
  PlainValue value;
  value.kind = PlainValue::Kind::integer;
  value.integer = n;
  return value;
}

PlainValue PlainData::make_boolean(bool b) {
  PlainValue value = make_integer(b ? 1 : 0);
  value.kind = PlainValue::Kind::boolean;
  return value;
}

PlainValue PlainData::make_real(double x) {
  PlainValue value;
  value.kind = PlainValue::Kind::real;
  value.real = x;
  return value;
}

PlainValue PlainData::make_text(std::string_view text) {
  PlainValue value;
  value.kind = PlainValue::Kind::text;
  value.length = static_cast<std::uint32_t>(text.size());
  value.text = text.data();
  return value;
}

}  // namespace headroom
