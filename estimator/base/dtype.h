// DType: element types, as ONNX numbers them and as PyTorch names them.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/base/bytes.h"

namespace headroom {

/// Values are those of onnx.TensorProto.DataType, so a file's code converts by a cast after `known_dtype`.
enum class DType : std::uint8_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  b8 = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
  f6e2m3 = 27,
  f6e3m2 = 28,
};

constexpr bool known_dtype(std::int64_t code) { return code >= 1 && code <= 28; }

/// Bits of one element; 0 for strings and undefined, which have no size on a GPU.
constexpr int bits_of(DType t) {
  switch (t) {
    case DType::undefined:
    case DType::string:
      return 0;
    case DType::u2:
    case DType::i2:
      return 2;
    case DType::u4:
    case DType::i4:
    case DType::f4e2m1:
      return 4;
    case DType::f6e2m3:
    case DType::f6e3m2:
      return 6;
    case DType::u8:
    case DType::i8:
    case DType::b8:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
      return 8;
    case DType::u16:
    case DType::i16:
    case DType::f16:
    case DType::bf16:
      return 16;
    case DType::f32:
    case DType::i32:
    case DType::u32:
      return 32;
    case DType::f64:
    case DType::i64:
    case DType::u64:
    case DType::c64:
      return 64;
    case DType::c128:
      return 128;
  }
  return 0;
}

/// Bytes that `count` elements take, packed; throws SizeOverflow.
constexpr Bytes bytes_of(DType t, std::int64_t count) {
  const int bits = bits_of(t);
  if (bits >= 8) return Bytes(checked_mul(count, bits / 8));
  return Bytes(checked_add(checked_mul(count, bits), 7) / 8);
}

constexpr bool is_float(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16 || t == DType::f64; }
/// fp16 or bf16: what "low precision" means in PyTorch's autocast.
constexpr bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
constexpr bool is_complex(DType t) { return t == DType::c64 || t == DType::c128; }
constexpr bool is_integer(DType t) {
  return t == DType::u8 || t == DType::i8 || t == DType::u16 || t == DType::i16 || t == DType::i32 || t == DType::i64 ||
         t == DType::u32 || t == DType::u64;
}

/// PyTorch's name without "torch.": "float32", "bfloat16", "int64", "bool".
std::string_view name_of(DType t);
/// Reverse of name_of, also with a leading "torch."; undefined when unknown.
DType dtype_named(std::string_view name);

}  // namespace headroom
