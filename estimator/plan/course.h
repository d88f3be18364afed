// Course: how the allocated bytes go through one step, by category, in a few hundred columns that one can draw.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "estimator/plan/estimate.h"

namespace headroom {

struct CoursePoint {
  std::array<Bytes, category_count> categories{};  ///< requested bytes alive
  Bytes sum() const;
};

struct Course {
  int step = 0;
  std::vector<CoursePoint> points;  ///< columns of equally many allocations, each at its highest moment
  struct Mark {
    Phase phase;
    std::size_t from = 0;  ///< column that the phase begins in
  };
  std::vector<Mark> phases;
  std::size_t peak = 0;  ///< column of the highest moment
};

/// Of the step that reaches the allocated peak of the run that `stages` holds, in at most `columns` (> 0).
Course course_of(const Stages& stages, std::size_t columns);

}  // namespace headroom
