// Reports of a difference: for a terminal, a program, a pull request.
#pragma once

#include <string>

#include "estimator/plan/difference.h"
#include "estimator/report/style.h"

namespace headroom::report {

/// What is borne, as it was given; "" when nothing was.
struct DifferenceVerdict {
  std::string tolerance;
  bool exceeded = false;
};

std::string difference_table(const Difference& d, const DifferenceVerdict& verdict, const TableStyle& style);
/// `before` and `after` (model, peak), `change` (bytes of each figure), `settings[]`, `categories[]`, `modules[]`,
/// `exceeded` when there is a tolerance.
std::string difference_json(const Difference& d, const DifferenceVerdict& verdict);
std::string difference_csv(const Difference& d);
std::string difference_markdown(const Difference& d, const DifferenceVerdict& verdict);

}  // namespace headroom::report
