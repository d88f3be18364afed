#include "estimator/recover/recover.h"

#include "estimator/recover/casts.h"
#include "estimator/recover/finish.h"
#include "estimator/recover/in_place.h"
#include "estimator/recover/lifetimes.h"
#include "estimator/recover/modules/bloom.h"
#include "estimator/recover/modules/fast_path.h"
#include "estimator/recover/modules/full_mask.h"
#include "estimator/recover/modules/recurrent_cell.h"
#include "estimator/recover/modules/rms_norm.h"
#include "estimator/recover/modules/rotary.h"
#include "estimator/recover/modules/stochastic_depth.h"
#include "estimator/recover/modules/t5.h"
#include "estimator/recover/modules/weight_norm.h"
#include "estimator/recover/patterns/patterns.h"
#include "estimator/recover/patterns/written_functions.h"
#include "estimator/recover/recovery.h"
#include "estimator/recover/removed_dropouts.h"
#include "estimator/recover/slot_uses.h"
#include "estimator/recover/text.h"
#include "estimator/recover/ties.h"

namespace headroom {

namespace {

void report_unfolded_batch_norms(recovery::Recovery& r) {
  if (!r.unfolded_batch_norms) return;
  Diagnostic d;
  d.code = "batch-norm-folded";
  d.message = "the inference export folded " + std::to_string(r.unfolded_batch_norms) +
              " batch norms into convolutions; they are restored, their parameters have made-up names";
  r.program.diagnostics.push_back(std::move(d));
}

}  // namespace

Program recover(const ShapedGraph& graph, const RecoverOptions& options) {
  using namespace recovery;
  Program program;
  program.diagnostics = graph.diagnostics;
  Recovery r(graph, options, program);
  plan_removed_clones(r);
  plan_text(r);
  plan_written_functions(r);
  plan_patterns(r);
  plan_position_buckets(r);
  plan_tied_weights(r);
  plan_dropouts_by_name(r);
  plan_noise_in_eval(r);
  plan_casts(r);
  plan_full_masks(r);
  plan_rms_norms(r);
  plan_weight_norms(r);
  plan_bloom_gelus(r);
  plan_recurrent_cells(r);
  plan_rotary(r);
  r.run();
  remove_dead_calls(r);
  take_fast_path(r);
  const SlotUses uses(program);
  find_in_place_calls(r, uses);
  find_lifetimes(r, uses);
  number_slots(r);
  report_unfolded_batch_norms(r);
  return program;
}

}  // namespace headroom
