// What --checkpoint names, as a plan: a file of ours, or module paths.
#pragma once

#include <string>
#include <string_view>

#include "estimator/program/checkpoint_plan.h"

namespace headroom::cli {

/// A plan file (JSON object):
///
///     {"schema_version": 1,
///      "calls": 364,                         // optional: of the program that call ranges are of
///      "segments": [
///        {"module": "h.0"},                  // each call of the module is a segment
///        {"modules": ["h.1", "h.2"]},        // consecutive modules as one segment
///        {"calls": [40, 66]},                // calls [40, 66) of `inspect --stage program`
///        {"module": "h.3", "reentrant": true},
///        {"module": "h.4", "save": ["aten::mm", "aten::addmm"]}]}
///
/// `use_reentrant` is False unless "reentrant" says otherwise; "save" is selective checkpointing, the operators whose
/// results are kept. Other keys of the file are for people. Throws Error(bad_input) with the place at fault.
CheckpointPlan read_plan_file(const std::string& path);

/// "encoder,decoder.layers.0": a segment for each call of each module.
CheckpointPlan plan_of_modules(std::string_view paths);

}  // namespace headroom::cli
