// Owners: the bytes that live at the peak, by the module they belong to.
#pragma once

#include <vector>

#include "estimator/plan/estimate.h"

namespace headroom {

/// Parameters and buffers belong to the module that registers them, what calls make to the module whose forward makes
/// the call (its backward's too); what the loop itself makes is its statement's: "(loss)", "(optimizer.step)",
/// "(inputs)". By path and category.
std::vector<OwnedBytes> owners_of(const std::vector<LiveBlock>& live, const shadow::Trace& trace,
                                  const Program& program);

}  // namespace headroom
