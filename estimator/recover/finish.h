// What is done with the calls once all are there.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// Removes calls whose results nobody reads.
void remove_dead_calls(Recovery& r);
/// Lists the parameters, and numbers the slots: parameters first, in their order, then inputs, then everything else.
void number_slots(Recovery& r);

}  // namespace headroom::recovery
