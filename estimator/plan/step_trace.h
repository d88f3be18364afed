// StepTrace: what a scenario's steps ask of the allocator, before there is one.
#pragma once

#include <functional>

#include "estimator/base/diagnostic.h"
#include "estimator/plan/profile.h"
#include "estimator/plan/shaped_programs.h"
#include "estimator/shadow/kernels/conv_workspace.h"
#include "estimator/shadow/shadow.h"
#include "estimator/shadow/trace.h"

namespace headroom {

struct StepTrace {
  shadow::Trace trace;
  Diagnostics diagnostics;  ///< of the table, the step and the machine
  bool uses_blas = false;   ///< cuBLAS has run, and is loaded
};

/// What of a scenario decides its StepTrace: all but the card's memory and the allocator's options. Of the card what
/// kernels ask for counts.
Scenario step_part(const Scenario& scenario);

/// How many steps a run has: --steps, one for each of --seqs, else until the state is steady.
int steps_of(const Scenario& scenario);

/// What the scenario's card and the profile (may be null) decide on the shadow machine.
shadow::DeviceFacts device_facts(const Scenario& scenario, const Profile* profile);

/// The machine that a session runs on, around a shadow machine.
using MachineAround = std::function<Machine&(shadow::Shadow&)>;

/// Runs the scenario's steps on the shadow machine. Throws Error.
/// `convolutions` (may be null) is asked for their workspaces instead of what the scenario's profile or card says;
/// `on_phase`, where given, is the recorder's; `around`, where given, stands between.
StepTrace step_trace(const ShapedPrograms& programs, const Scenario& scenario,
                     const shadow::ConvWorkspaces* convolutions = nullptr,
                     std::function<void(const shadow::Trace&)> on_phase = {}, const MachineAround& around = {});

}  // namespace headroom
