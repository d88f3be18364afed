// Weights that the exporter's optimiser computed: it takes parameters for constants, so what a module makes of them
// before it uses them (weight_norm, spectral_norm, weight standardisation, `weight.T`) is one constant without their
// name.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// `v` is read as the weight of a layer and is such a constant.
bool is_folded_weight(const Recovery& r, ValueId v);
/// The weight as eager has it, transposed if the file holds W.T.
SlotId folded_weight(Recovery& r, ValueId v);
/// `v` scales channels: a parameter that the module views as [C, 1, 1].
bool is_folded_scale(const Recovery& r, ValueId v);
/// A two-dimensional constant that is the transposed of a weight.
bool is_turned_weight(const Recovery& r, ValueId v);

}  // namespace headroom::recovery
