// Reports of verifications.
#pragma once

#include <string>
#include <vector>

#include "calibration/measure/verification.h"
#include "estimator/report/style.h"

namespace headroom::report {

/// A verification with what it is of.
struct VerifiedRow {
  std::string name;  ///< file and options
  Verification verification;
};

/// One: figures and phases side by side, and where the events part.
std::string table(const VerifiedRow& row, const TableStyle& style);
/// Many: a row each.
std::string table(const std::vector<VerifiedRow>& rows, const TableStyle& style);
std::string json(const std::vector<VerifiedRow>& rows);
/// The last step's events, estimated and measured, as JSON.
std::string events_json(const Verification& verification);

std::string table(const LargestBatch& batch);
std::string json(const LargestBatch& batch);

}  // namespace headroom::report
