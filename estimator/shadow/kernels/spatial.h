// What convolutions, pools and resampling share: parameters with one number a dimension, memory formats, masks.
#pragma once

#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

/// An int[n] argument: one number stands for all n dimensions.
Dims spread(const Value& v, std::size_t n);
/// `sizes` with the last ones replaced.
Dims with_last(const Dims& sizes, const Dims& last);
/// at::Tensor::suggest_memory_format.
MemoryFormat suggested_format(const Tensor& t);
/// at::empty(sizes, memory_format); channels_last only where there are 4 or 5 sizes.
Tensor empty_spatial(Shadow& m, const Dims& sizes, DType dtype, MemoryFormat format);
/// Whether element `i` of an output_mask (bool[n]) is set.
bool wanted(const Value& mask, std::size_t i);
/// The ATen name of a format, for arguments of `aten::contiguous`.
std::string_view name_of(MemoryFormat format);

}  // namespace headroom::shadow
