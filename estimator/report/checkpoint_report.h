// Reports of where to checkpoint: the front, what is chosen of it, and how to apply it.
#pragma once

#include <string>

#include "estimator/plan/checkpoint/planner.h"
#include "estimator/report/style.h"

namespace headroom::report {

std::string checkpoint_table(const CheckpointAnswer& a, const TableStyle& style);
/// `baselines[]`, `front[]` and `chosen`, each with `name`, `peak`, `recomputed` (share of forward and backward),
/// `recomputed_work` and `segments[]`; `flops` and `bytes` of the forward pass; `exact`; `code` and `plan` of the
/// chosen.
std::string checkpoint_json(const CheckpointAnswer& a);

/// Python to paste that checkpoints the segments: modules are wrapped by name, other stretches are named as comments.
std::string checkpoint_code(const SimulatedPlacement& p);
/// What `--checkpoint PLAN.json` reads.
std::string checkpoint_plan_json(const SimulatedPlacement& p, std::size_t calls);
/// The front as a picture: recomputed work across, the allocated peak up; the baselines beside it.
std::string checkpoint_svg(const CheckpointAnswer& a);

}  // namespace headroom::report
