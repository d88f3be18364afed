// Reports of `headroom fit`.
#pragma once

#include <string>
#include <vector>

#include "estimator/plan/fit.h"
#include "estimator/report/grid.h"

namespace headroom::report {

struct FitAnswer {
  std::string model;  ///< file name
  FitQuestion question;
  std::vector<CardFit> cards;
  Diagnostics diagnostics;  ///< about the question
  std::string more_cards;   ///< how to ask about others; may be empty
};

/// For people: a row for each card.
GridDocument fit_grid(const FitAnswer& answer);

/// `cards[]` with `gpu`, `memory_bytes`, `fits`, `peak`, `margin`, `spare_bytes`; of a search `max`, `next`,
/// `next_peak` and `next_spare_bytes` too; `accumulation` and `price` where asked; or `error`.
std::string fit_json(const FitAnswer& answer);
std::string fit_csv(const FitAnswer& answer);

}  // namespace headroom::report
