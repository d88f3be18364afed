// From the dynamo exporter's text to calls: the ONNX nodes give data flow and shapes, the text gives the ATen call and
// the names of its parameters.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// Finds the copies that the exporter's optimiser removed, an argument `%clone…` that no node defines: of a turned
/// tensor it was `.contiguous()`, else in an inference export a dropout. One call a name.
void plan_removed_clones(Recovery& r);
/// Claims every fx group whose call can be said from its text; the others are left to patterns and operators.
void plan_text(Recovery& r);

}  // namespace headroom::recovery
