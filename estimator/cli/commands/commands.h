// The commands: thin, each one question.
#pragma once

#include "estimator/base/diagnostic.h"
#include "estimator/cli/options.h"

namespace headroom::cli {

int run_estimate(const Options& o);
int run_inspect(const Options& o);
int run_ops(const Options& o);
int run_gpus(const Options& o);
int run_completions(const Options& o);

/// The one model file of the command. Throws Error(usage) when there is none or more.
const std::string& model_file(const Options& o, std::string_view command);
/// The scenario with the card of --gpu and --memory filled in.
Scenario scenario_of(const Options& o);
/// Options that are understood but not modelled yet: said as diagnostics, never silently ignored.
Diagnostics not_modelled_yet(const Scenario& s);

}  // namespace headroom::cli
