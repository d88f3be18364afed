// Memory formats and devices as arguments of ATen calls, and empty tensors made by them.
#pragma once

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

enum class MemoryFormat : std::uint8_t { preserve, contiguous, channels_last };

/// The memory_format argument; `fallback` where None was passed.
MemoryFormat memory_format(const Args& args, std::size_t i, MemoryFormat fallback);
/// Whether the Device argument names the CPU.
bool names_host(const Args& args, std::size_t i);

/// at::empty_like(like, dtype, format); on the host when `like` is.
Tensor empty_in_format(Shadow& m, const Tensor& like, DType dtype, MemoryFormat format);
/// at::empty(sizes) with the options of `like`.
Tensor empty_beside(Shadow& m, const Tensor& like, const Dims& sizes, DType dtype = DType::undefined);
/// Whether `t` already lies in that format (preserve: always).
bool in_format(const Tensor& t, MemoryFormat format);
/// clone(memory_format=channels_last or contiguous) where `t` does not lie in that format yet; else `t`.
Tensor in_format_of(Shadow& m, const Tensor& t, MemoryFormat format);

}  // namespace headroom::shadow
