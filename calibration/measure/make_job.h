// The job that measures what an estimate is of.
#pragma once

#include "calibration/job/job.h"
#include "estimator/plan/shaped_programs.h"

namespace headroom {

/// Programs, steps and scenario as the estimate ran them, with the shapes that binding gave the file's values.
Job make_job(const ShapedPrograms& programs, const Scenario& scenario);

}  // namespace headroom
