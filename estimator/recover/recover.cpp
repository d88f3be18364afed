#include "estimator/recover/recover.h"

#include "estimator/recover/casts.h"
#include "estimator/recover/finish.h"
#include "estimator/recover/patterns/patterns.h"
#include "estimator/recover/recovery.h"
#include "estimator/recover/text.h"

namespace headroom {

Program recover(const ShapedGraph& graph, const RecoverOptions& options) {
  using namespace recovery;
  Program program;
  program.diagnostics = graph.diagnostics;
  Recovery r(graph, options, program);
  plan_removed_dropouts(r);
  plan_text(r);
  plan_patterns(r);
  plan_casts(r);
  r.run();
  remove_dead_calls(r);
  number_slots(r);
  return program;
}

}  // namespace headroom
