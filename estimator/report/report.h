// Reports of an estimate. They print; they do not compute.
#pragma once

#include <string>

#include "estimator/plan/estimate.h"
#include "estimator/report/style.h"

namespace headroom::report {

/// The JSON of the contract (design, section 5), schema_version 1. Byte counts are integers.
std::string json(const Estimate& e);

/// For a terminal: the three figures and whether it fits, categories, phases, largest tensors, what was not modelled.
std::string table(const Estimate& e, const TableStyle& style = {});

/// One row a category with its bytes and share; the three figures as rows of their own.
std::string csv(const Estimate& e);
std::string markdown(const Estimate& e);

}  // namespace headroom::report
