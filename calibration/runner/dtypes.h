// Element types as PyTorch's C++ names them.
#pragma once

#include <c10/core/ScalarType.h>

#include "estimator/base/dtype.h"

namespace headroom::runner {

/// Throws Error(not_modelled) for a type that PyTorch's tensors cannot have.
c10::ScalarType scalar_type(DType t);
/// undefined for a type that has no counterpart.
DType dtype_of(c10::ScalarType t);

}  // namespace headroom::runner
