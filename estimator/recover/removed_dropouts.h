// Dropouts that a TorchScript inference export no longer has: module names tell where families put them.
#pragma once

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// Restores the dropouts of the BERT, GPT-2, T5, BART and DistilBERT families after the modules of those names, and
/// after plain softmaxes; a gap in a Sequential's indices is only reported.
void plan_dropouts_by_name(Recovery& r);

}  // namespace headroom::recovery
