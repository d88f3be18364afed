// ShapedPrograms: what a scenario's shapes make of a model, before any optimizer or card.
#pragma once

#include <memory>
#include <vector>

#include "estimator/bind/shaped_graph.h"
#include "estimator/program/program.h"
#include "estimator/program/scenario.h"
#include "estimator/recover/recover.h"

namespace headroom {

struct ShapedPrograms {
  std::vector<std::shared_ptr<const ShapedGraph>> graphs;  ///< one per distinct sequence length
  std::vector<std::shared_ptr<const Program>> programs;
  std::vector<const Program*> order;  ///< of step i, repeating
};

/// What of a scenario decides its ShapedPrograms: the task and the sizes; in inference also the precision.
Scenario shape_part(const Scenario& scenario);

/// How the scenario's programs are recovered.
RecoverOptions recover_options(const Scenario& scenario);

/// Binds and recovers; `read_text` as in RecoverOptions. Throws Error.
ShapedPrograms shaped_programs(const Model& model, const Scenario& scenario, bool read_text = true);

}  // namespace headroom
