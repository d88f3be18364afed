#include "estimator/base/dtype.h"

#include <array>

namespace headroom {
namespace {

constexpr std::array<std::string_view, 29> names = {"undefined",
                                                    "float32",
                                                    "uint8",
                                                    "int8",
                                                    "uint16",
                                                    "int16",
                                                    "int32",
                                                    "int64",
                                                    "string",
                                                    "bool",
                                                    "float16",
                                                    "float64",
                                                    "uint32",
                                                    "uint64",
                                                    "complex64",
                                                    "complex128",
                                                    "bfloat16",
                                                    "float8_e4m3fn",
                                                    "float8_e4m3fnuz",
                                                    "float8_e5m2",
                                                    "float8_e5m2fnuz",
                                                    "uint4",
                                                    "int4",
                                                    "float4_e2m1fn",
                                                    "float8_e8m0fnu",
                                                    "uint2",
                                                    "int2",
                                                    "float6_e2m3fn",
                                                    "float6_e3m2fn"};

}  // namespace

std::string_view name_of(DType t) { return names[static_cast<std::size_t>(t)]; }

DType dtype_named(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (name == "float") return DType::f32;
  if (name == "half") return DType::f16;
  if (name == "double") return DType::f64;
  if (name == "long") return DType::i64;
  if (name == "int") return DType::i32;
  for (std::size_t i = 1; i < names.size(); ++i)
    if (names[i] == name) return static_cast<DType>(i);
  return DType::undefined;
}

}  // namespace headroom
