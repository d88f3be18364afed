#include "estimator/shadow/signature.h"

#include <algorithm>
#include <bit>

namespace headroom::shadow {
namespace {

/// More are compared with one another no longer.
constexpr std::size_t most_tensors = 64;

constexpr std::uint64_t given_before = 0xFF;  ///< stands where a kind of value stands

std::uint64_t head(Value::Kind kind, std::uint64_t count = 0) { return static_cast<std::uint64_t>(kind) | count << 32; }

}  // namespace

void Signature::add_geometry(Words& words, const TensorImpl& t) {
  std::uint64_t flags = 0;
  for (const bool flag :
       {t.host, t.wrapped_number, t.parameter, t.needs_grad(), static_cast<bool>(t.base), static_cast<bool>(t.storage)})
    flags = flags << 1 | (flag ? 1U : 0U);
  const std::size_t at = words.size(), rank = t.dim();
  words.resize(at + 2 + 2 * rank);
  std::uint64_t* to = words.data() + at;
  *to++ = head(Value::Kind::tensor, rank) | static_cast<std::uint64_t>(t.dtype) << 8 | flags << 16;
  *to++ = static_cast<std::uint64_t>(t.offset);
  for (std::size_t i = 0; i < rank; ++i) to[i] = static_cast<std::uint64_t>(t.sizes[i]);
  for (std::size_t i = 0; i < rank; ++i) to[rank + i] = static_cast<std::uint64_t>(t.strides[i]);
}

void Signature::add(const Tensor& t) {
  if (!t) {
    words_.push_back(head(Value::Kind::none));
    return;
  }
  if (tensors_.size() >= most_tensors) {
    complete_ = false;
    return;
  }
  const auto same = std::find(tensors_.begin(), tensors_.end(), t.get());
  if (same != tensors_.end()) {
    words_.push_back(given_before | static_cast<std::uint64_t>(same - tensors_.begin()) << 8);
    places_.push_back(0);
  } else {
    places_.push_back(static_cast<std::uint32_t>(words_.size()));
    add_geometry(words_, *t);
  }
  tensors_.push_back(t.get());
}

void Signature::add(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::none:
      words_.push_back(head(v.kind()));
      return;
    case Value::Kind::tensor:
      add(v.tensor());
      return;
    case Value::Kind::list:
      words_.push_back(head(v.kind(), v.list().size()));
      for (const Value& one : v.list()) {
        if (!complete_) return;
        add(one);
      }
      return;
    case Value::Kind::integers:
      words_.push_back(head(v.kind(), v.integers().size()));
      for (const std::int64_t n : v.integers()) words_.push_back(static_cast<std::uint64_t>(n));
      return;
    case Value::Kind::integer:
    case Value::Kind::boolean:
      words_.push_back(head(v.kind()));
      words_.push_back(static_cast<std::uint64_t>(v.integer()));
      return;
    case Value::Kind::real:
      words_.push_back(head(v.kind()));
      words_.push_back(std::bit_cast<std::uint64_t>(v.real()));
      return;
    case Value::Kind::dtype:
      words_.push_back(head(v.kind(), static_cast<std::uint64_t>(v.dtype())));
      return;
    case Value::Kind::text:
      words_.push_back(head(v.kind(), v.text().size()));
      for (const char c : v.text()) words_.push_back(static_cast<std::uint64_t>(c));
      return;
  }
}

bool Signature::still_true() const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (places_[i] == 0) continue;
    Words now;
    add_geometry(now, *tensors_[i]);
    if (places_[i] + now.size() > words_.size() || !std::equal(now.begin(), now.end(), words_.begin() + places_[i]))
      return false;
  }
  return true;
}

std::size_t Signature::hash() const {
  std::uint64_t h = words_.size();
  for (const std::uint64_t w : words_) {
    h = (h ^ w) * 0x9E3779B97F4A7C15U;  // the golden ratio's bits
    h ^= h >> 32;
  }
  return h;
}

}  // namespace headroom::shadow
