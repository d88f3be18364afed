#include "estimator/bind/contents.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "estimator/bind/node_shaper.h"

namespace headroom {
namespace {

constexpr std::int64_t max_external_elements = 64;

template <class T>
T element(std::span<const std::byte> bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const double mantissa = bits & 1023;
  const double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                           : exponent == 31 ? (mantissa == 0 ? HUGE_VAL : NAN)
                                            : std::ldexp(mantissa + 1024, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

double bfloat_to_double(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::int64_t integer_at(DType dtype, std::span<const std::byte> b, std::size_t i) {
  switch (dtype) {
    case DType::b8:
    case DType::u8:
      return element<std::uint8_t>(b, i);
    case DType::i8:
      return element<std::int8_t>(b, i);
    case DType::u16:
      return element<std::uint16_t>(b, i);
    case DType::i16:
      return element<std::int16_t>(b, i);
    case DType::u32:
      return element<std::uint32_t>(b, i);
    case DType::i32:
      return element<std::int32_t>(b, i);
    default:
      return element<std::int64_t>(b, i);
  }
}

double real_at(DType dtype, std::span<const std::byte> b, std::size_t i) {
  switch (dtype) {
    case DType::f16:
      return half_to_double(element<std::uint16_t>(b, i));
    case DType::bf16:
      return bfloat_to_double(element<std::uint16_t>(b, i));
    case DType::f32:
      return element<float>(b, i);
    default:
      return element<double>(b, i);
  }
}

/// Indices and switches, which shapes are made of; other integers are mostly quantised weights.
bool is_index(DType t) { return t == DType::i64 || t == DType::i32 || t == DType::b8; }

}  // namespace

bool has_contents(DType t) { return is_float(t) || is_integer(t) || t == DType::b8; }

bool foldable(DType dtype, const Dims& dims) {
  std::int64_t room = is_float(dtype) ? max_folded_reals : has_contents(dtype) ? max_folded_integers : 0;
  for (const auto d : dims) {
    if (d > room) return false;
    if (d > 0) room /= d;
  }
  return room > 0;
}

std::int64_t wrapped(DType dtype, std::int64_t v) {
  switch (dtype) {
    case DType::b8:
      return v != 0;
    case DType::u8:
      return static_cast<std::uint8_t>(v);
    case DType::i8:
      return static_cast<std::int8_t>(v);
    case DType::u16:
      return static_cast<std::uint16_t>(v);
    case DType::i16:
      return static_cast<std::int16_t>(v);
    case DType::u32:
      return static_cast<std::uint32_t>(v);
    case DType::i32:
      return static_cast<std::int32_t>(v);
    default:
      return v;
  }
}

double rounded(DType dtype, double value) {
  return dtype == DType::f64 ? value : static_cast<double>(static_cast<float>(value));
}

std::shared_ptr<const KnownContents> contents_of(const Model& model, const TensorData& tensor) {
  const Dims dims(tensor.dims.begin(), tensor.dims.end());
  if (!foldable(tensor.dtype, dims)) return nullptr;
  const std::int64_t count = element_count(dims);
  if (!is_float(tensor.dtype) && !is_index(tensor.dtype) && count > max_folded_reals) return nullptr;
  const std::int64_t size = bytes_of(tensor.dtype, count).count();

  std::span<const std::byte> bytes = tensor.bytes;
  std::vector<std::byte> external;
  if (tensor.where == TensorData::Where::external && count <= max_external_elements) {
    external = weight_bytes(model, tensor, 0, size);
    bytes = external;
  }
  if (std::ssize(bytes) < size) return nullptr;

  KnownContents contents;
  const auto n = static_cast<std::size_t>(count);
  if (is_float(tensor.dtype)) {
    contents.reals.resize(n);
    for (std::size_t i = 0; i < n; ++i) contents.reals[i] = real_at(tensor.dtype, bytes, i);
  } else {
    contents.integers.resize(n);
    for (std::size_t i = 0; i < n; ++i) contents.integers[i] = integer_at(tensor.dtype, bytes, i);
  }
  return std::make_shared<const KnownContents>(std::move(contents));
}

ShapedValue value_of(const Model& model, const TensorData& tensor) {
  ShapedValue v;
  v.kind = ShapedValue::Kind::tensor;
  v.dtype = tensor.dtype;
  v.dims.assign(tensor.dims.begin(), tensor.dims.end());
  v.contents = contents_of(model, tensor);
  return v;
}

}  // namespace headroom
