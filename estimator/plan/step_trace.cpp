#include "estimator/plan/step_trace.h"

#include <algorithm>
#include <utility>

#include "estimator/plan/profile.h"
#include "estimator/step/session.h"

namespace headroom {
namespace {

/// Steps that are run when the scenario names none: the state of iteration 2 is steady (design, section 1).
constexpr int steady_steps = 3;

}  // namespace

shadow::DeviceFacts device_facts(const Scenario& s, const Profile* profile) {
  shadow::DeviceFacts d;
  d.sm_count = s.device.sm_count;
  d.threads_per_sm = s.device.threads_per_sm;
  d.compute_major = s.device.compute_major;
  d.compute_minor = s.device.compute_minor;
  // aten/src/ATen/cuda/CublasHandlePool.cpp, getChosenWorkspaceSize: :4096:8 on Hopper, else :4096:2:16:8.
  d.cublas_workspace = s.device.compute_major == 9 ? Bytes(32 * MiB) : Bytes(8 * MiB + 128 * KiB);
  if (profile) {
    d.cublas_workspace = profile->cublas_workspace;
    d.cublaslt_workspace = profile->cublaslt_workspace;
    d.convolutions = profile->workspaces();
  }
  d.attention = s.attention;
  return d;
}

int steps_of(const Scenario& s) {
  if (s.steps > 0) return static_cast<int>(s.steps);
  const int steps = s.sequences.empty() ? steady_steps : static_cast<int>(s.sequences.size());
  return steps + static_cast<int>(s.skipped_steps);
}

Scenario step_part(const Scenario& scenario) {
  Scenario s = scenario;
  s.device.name = {};
  s.device.total_bytes = {};
  s.alloc_conf = {};
  return s;
}

StepTrace step_trace(const ShapedPrograms& programs, const Scenario& scenario,
                     const shadow::ConvWorkspaces* convolutions, std::function<void(const shadow::Trace&)> on_phase,
                     const MachineAround& around) {
  StepTrace out;
  const auto profile = profile_of(scenario);
  const aten::ChosenTable table = aten::table_for(scenario.torch_version);
  if (!table.exact)
    out.diagnostics.push_back({.code = "torch-version",
                               .severity = Severity::warning,
                               .node = {},
                               .message = "no table for torch " + scenario.torch_version + ": the rules of " +
                                          std::string(table.table->version()) + " are used"});
  shadow::DeviceFacts facts = device_facts(scenario, profile.get());
  if (convolutions) facts.convolutions = convolutions;
  shadow::Shadow machine(*table.table, facts);
  machine.recorder().on_phase = std::move(on_phase);
  run_session(around ? around(machine) : machine, programs.order, scenario, steps_of(scenario), out.diagnostics);
  out.diagnostics.insert(out.diagnostics.end(), machine.diagnostics.begin(), machine.diagnostics.end());
  out.trace = machine.take_trace();
  out.uses_blas = std::ranges::any_of(out.trace.blocks, [&](const shadow::TraceBlock& b) {
    return b.category == Category::workspaces && b.bytes == facts.cublas_workspace;
  });
  return out;
}

}  // namespace headroom
