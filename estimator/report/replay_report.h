// Reports of a replayed history. They print; they do not compute.
#pragma once

#include <string>
#include <vector>

#include "estimator/plan/replay_answer.h"
#include "estimator/report/style.h"

namespace headroom::report {

/// One object: the figures of the setting asked about (`peak`, `end`, `fragmentation`, `fits`, …), `settings` with the
/// figures of each, `check`, `leaks`, `timeline`. Several histories in one file: `histories` holds one such object
/// each, and the outer `peak`, `fits` and `check` are the highest peaks, all of them, and the sums.
std::string replay_json(const std::vector<ReplayAnswer>& answers);
/// For a terminal: the peaks, the course, the settings side by side, refusals, what keeps growing, the check.
std::string replay_table(const std::vector<ReplayAnswer>& answers, const TableStyle& style = {});
/// One row a setting.
std::string replay_csv(const std::vector<ReplayAnswer>& answers);
std::string replay_markdown(const std::vector<ReplayAnswer>& answers);

/// "recorded: max_split_size_mb:64", "defaults": a setting's name in a table.
std::string setting_name(const ReplayedSetting& s);

}  // namespace headroom::report
