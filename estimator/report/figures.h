// What every text report of an estimate shows, in one order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/plan/estimate.h"

namespace headroom::report {

struct CategoryRow {
  std::string name;  ///< for people: "optimizer state"
  std::string key;   ///< the JSON's: "optimizer_state"
  Bytes bytes;
  double share = 0;  ///< of the allocated peak, 0..1
};
/// Categories that are not empty at the peak, largest first, rounding last.
std::vector<CategoryRow> category_rows(const Estimate& e);

struct PhaseRow {
  Phase phase = Phase::forward;
  Bytes allocated, reserved;
};
/// Forward, backward, optimizer: peaks over the run; phases that did not run are left out.
std::vector<PhaseRow> phase_rows(const Estimate& e);

/// One step of the run, all phases together.
struct StepRow {
  int step = 0;
  Bytes allocated_peak, reserved_peak;
  Bytes allocated_end, reserved_end;
};
/// All steps of the run, without the setup.
std::vector<StepRow> step_rows(const Estimate& e);

/// Diagnostics with the same code and message once, with their count and the sum of their bounds.
struct DiagnosticRow {
  Diagnostic diagnostic;
  int count = 1;
};
std::vector<DiagnosticRow> diagnostic_rows(const Estimate& e);

/// "optimizer state" of "optimizer_state".
std::string spaced(std::string_view key);
/// "+1.50 GiB", "-20.0 MiB", "0 B".
std::string signed_size(Bytes b);
/// What one types to estimate the same model under `s`.
std::string estimate_command(const Estimate& e, const Scenario& s);

/// "backward, aten::mm in transformer.h.0.mlp", "setup, wte.weight".
std::string place_line(const RunPlace& p);

/// "batch 8, sequence 512, amp-bf16, adamw foreach, cross-entropy, training step".
std::string scenario_line(const Estimate& e);

/// "batch 8, precision amp-bf16, optimizer adamw, training step": what is not the default, and these; `varied` (names
/// of flags or dimensions) left out.
std::string scenario_summary(const Scenario& s, std::span<const std::string> varied);

}  // namespace headroom::report
