// Shapes of matrix products, shared by the families that multiply matrices.
#pragma once

#include "estimator/bind/node_shaper.h"

namespace headroom {

/// Shape of numpy.matmul(a, b): batch dims broadcast, vectors on either side. Fails through `op`.
Dims matmul_dims(const NodeShaper& op, Dims a, Dims b);

}  // namespace headroom
