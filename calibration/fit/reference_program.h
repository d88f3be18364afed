// A small network of every kind of layer that makes a library load: what calibration learns a card's context and
// workspaces from.
#pragma once

#include "estimator/program/program.h"

namespace headroom {

Program reference_program();

}  // namespace headroom
