// Casts of a float32 file that may run in another precision.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// The dtype argument of a tensor that a float32 file makes from nothing: float32 stands for the module's own dtype
/// (masks, noise are made in the stream's), except inside a rotary embedding, which computes in float32.
Arg stream_dtype_for(Recovery& r, DType stored);

/// The dtype that the module's activations have: that of its parameters.
Arg stream_dtype(Recovery& r);

/// A module whose arithmetic stays in float32 by its own `.float()`: rotary embeddings, and norms written in Python.
bool is_rotary(std::string_view module_path, std::string_view module_class);
bool is_norm(std::string_view module_path, std::string_view module_class);

/// Calls `x.to(dtype)`; nothing happens where the dtype is the same.
SlotId call_to(Recovery& r, SlotId x, Arg dtype, std::string name);

/// Plans how the float casts of the file are read: which readers see the value before the cast.
void plan_casts(Recovery& r);

}  // namespace headroom::recovery
