#include "calibration/runner/dtypes.h"

#include <array>
#include <string>
#include <utility>

#include "estimator/base/error.h"

namespace headroom::runner {
namespace {

constexpr auto pairs = std::to_array<std::pair<DType, c10::ScalarType>>({
    {DType::f32, c10::ScalarType::Float},
    {DType::f16, c10::ScalarType::Half},
    {DType::bf16, c10::ScalarType::BFloat16},
    {DType::f64, c10::ScalarType::Double},
    {DType::u8, c10::ScalarType::Byte},
    {DType::i8, c10::ScalarType::Char},
    {DType::u16, c10::ScalarType::UInt16},
    {DType::i16, c10::ScalarType::Short},
    {DType::u32, c10::ScalarType::UInt32},
    {DType::i32, c10::ScalarType::Int},
    {DType::u64, c10::ScalarType::UInt64},
    {DType::i64, c10::ScalarType::Long},
    {DType::b8, c10::ScalarType::Bool},
    {DType::c64, c10::ScalarType::ComplexFloat},
    {DType::c128, c10::ScalarType::ComplexDouble},
    {DType::f8e4m3fn, c10::ScalarType::Float8_e4m3fn},
    {DType::f8e4m3fnuz, c10::ScalarType::Float8_e4m3fnuz},
    {DType::f8e5m2, c10::ScalarType::Float8_e5m2},
    {DType::f8e5m2fnuz, c10::ScalarType::Float8_e5m2fnuz},
});

}  // namespace

c10::ScalarType scalar_type(DType t) {
  for (const auto& [ours, theirs] : pairs)
    if (ours == t) return theirs;
  throw Error(Exit::not_modelled, "PyTorch has no tensors of " + std::string(name_of(t)));
}

DType dtype_of(c10::ScalarType t) {
  for (const auto& [ours, theirs] : pairs)
    if (theirs == t) return ours;
  return DType::undefined;
}

}  // namespace headroom::runner
