// Names that functions usually bind and no file without source lines tells of: what an RMS norm, a rotary embedding and
// an attention keep alive until they return, as transformers writes them.
#pragma once

#include <unordered_map>

#include "estimator/recover/recovery.h"
#include "estimator/recover/slot_uses.h"

namespace headroom::recovery {

/// How long a value keeps its name.
struct CommonLocal {
  /// The call after whose return the name is bound anew; -1: it stays until the function's end.
  std::int32_t until = -1;
  int place = 0;  ///< among the locals that go at the end
};

using CommonLocals = std::unordered_map<SlotId, CommonLocal>;

/// Of all values; of a file with source lines only those of T5's helper functions, whose lines are not in it.
CommonLocals find_common_locals(const Recovery& r, const SlotUses& uses);

}  // namespace headroom::recovery
