// The document for a design review: what is asked, the figure and how far to trust it, where the bytes are, what other
// sizes and cards make of it, what to change, what was assumed.
#pragma once

#include <optional>

#include "estimator/plan/course.h"
#include "estimator/report/document.h"
#include "estimator/report/fit_report.h"
#include "estimator/report/sweep_report.h"

namespace headroom {
struct Advice;
}

namespace headroom::report {

struct Review {
  const Advice& advice;  ///< its base is what the document is about
  Course course;
  std::optional<Sweep> sweep;
  std::vector<FitAnswer> fits;
};

Document review_document(const Review& r);

}  // namespace headroom::report
