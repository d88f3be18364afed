// Where Python lets a value go.
#pragma once

#include "estimator/recover/recovery.h"
#include "estimator/recover/slot_uses.h"

namespace headroom::recovery {

/// Fills `Call::drops`: a value's home is the deepest frame that holds its producer and all its readers; there it is a
/// temporary of one statement, or bound to a name until that name is bound again or the frame ends. Frames come from
/// the stack traces of the file, else from its scopes (then two rules hold values longer: one that several calls of the
/// frame read, and the parts of a concatenation of three or more, live to the frame's end).
void find_lifetimes(Recovery& r, const SlotUses& uses);

}  // namespace headroom::recovery
