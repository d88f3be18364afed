// What the library takes for single convolutions: the job's probes, one answer each.
#pragma once

#include "calibration/job/job.h"
#include "calibration/runner/device.h"
#include "calibration/runner/report.h"

namespace headroom::runner {

/// Measures the probes in their order until the job's time is over. A probe that no kernel or no memory is there for
/// answers nothing for the calls that failed.
void measure_convolutions(const Job& job, Device& device, Report& report);

}  // namespace headroom::runner
