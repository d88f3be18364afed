// Reports of advice: the ladder, and the set of changes that fits.
#pragma once

#include <string>

#include "estimator/plan/advise.h"
#include "estimator/report/style.h"

namespace headroom::report {

std::string advice_table(const Advice& a, const TableStyle& style);
/// `base` and `steps[]`: `key`, `title`, `cost`, `code`, `add` and `leave_away` (flags), and `alone` and `together`,
/// each with `flags` (all of the question), `peak`, `saved`, `fits`; `validation`, `left_out[]`, `unmodelled[]`; with a
/// card `chosen` with `keys`, `flags`, `peak`, `fits`, `spare_bytes`.
std::string advice_json(const Advice& a);
/// One row a step.
std::string advice_csv(const Advice& a);
std::string advice_markdown(const Advice& a);

/// "compute: faster; accuracy: small; effort: a few lines".
std::string cost_text(const ChangeCost& c);
/// "--precision amp-bf16", "without --keep-grads".
std::string flags_text(const Scenario& before, const Scenario& after);
/// One sentence on the chosen set: "fits NVIDIA A10G with these 2 changes: 1.2 GiB to spare".
std::string chosen_sentence(const Advice& a);

}  // namespace headroom::report
