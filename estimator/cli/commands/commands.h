// The commands: thin, each one question.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/bytes.h"
#include "estimator/base/diagnostic.h"
#include "estimator/cli/options.h"

namespace headroom {
struct Estimate;
}

namespace headroom::cli {

int run_estimate(const Options& o);
int run_inspect(const Options& o);
int run_replay(const Options& o);
int run_advise(const Options& o);
int run_checkpoint(const Options& o);
int run_check(const Options& o);
int run_diff(const Options& before);
int run_verify(const Options& o);
int run_fit(const Options& o);
int run_sweep(const Options& o);
int run_calibrate(const Options& o);
int run_ops(const Options& o);
int run_gpus(const Options& o);
int run_completions(const Options& o);
int run_man(const Options& o);
int run_report(const Options& o);

/// The one file that the command is about. `what` and `example` are for the message. Throws Error(usage) when there is
/// none or more, or when a result would be written over it.
const std::string& one_file(const Options& o, std::string_view what, std::string_view example);
const std::string& model_file(const Options& o);
/// The cards that are asked about: those named, `all`, or else the usual ones by size; --memory alone is one without a
/// name, and with names the part of each that is yours.
std::vector<Device> devices_of(const Options& o);
/// --memory, --budget. Throw Error(usage) when it is no size.
std::optional<Bytes> memory_of(const Options& o);
std::optional<Bytes> budget_of(const Options& o);
/// The scenario with the card of --gpu and --memory filled in.
Scenario scenario_of(const Options& o);
/// Options that are understood but not modelled yet: said as diagnostics, never silently ignored.
Diagnostics not_modelled_yet(const Scenario& s);
/// Adds those to `all` that are not there yet.
void note_not_modelled_yet(const Scenario& s, Diagnostics& all);
/// --strict: throws Error(not_modelled) for the first thing that had to be bounded.
void demand_modelled(const Estimate& e);

}  // namespace headroom::cli
