// Sub-graphs that eager runs as other calls than the operators say: one file a family, each pattern tried at nodes of
// one operator. For graphs and nodes without text.
#pragma once

#include <span>
#include <string_view>

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

struct Pattern {
  std::string_view op_type;  ///< tried at nodes of this operator
  void (*find)(Recovery&, NodeIndex);
};
using PatternFamily = std::span<const Pattern>;

PatternFamily linear_patterns();
PatternFamily activation_patterns();
PatternFamily attention_patterns();
PatternFamily normalization_patterns();
PatternFamily shape_patterns();
PatternFamily random_patterns();
PatternFamily batch_norm_patterns();
PatternFamily recurrent_patterns();
PatternFamily embedding_bag_patterns();
PatternFamily loss_patterns();
PatternFamily slice_assignment_patterns();

/// Claims every pattern found among nodes that no text has claimed.
void plan_patterns(Recovery& r);

}  // namespace headroom::recovery
