// TorchMachine: the Machine that executes a step in PyTorch: each call through the dispatcher, with real autograd.
#pragma once

#include <memory>

#include "calibration/job/job.h"
#include "calibration/runner/device.h"
#include "calibration/runner/report.h"
#include "estimator/step/machine.h"

namespace headroom::runner {

/// Runs the job's steps on `device`, and reports each phase. What goes wrong is thrown: Error, c10::Error.
void run_job(const Job& job, Device& device, Report& report);

}  // namespace headroom::runner
