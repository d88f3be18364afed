// The timeline of one step as a picture: what is alive, by category, from the first forward to zero_grad.
#pragma once

#include "estimator/plan/course.h"
#include "estimator/report/picture.h"

namespace headroom::report {

Picture course_picture(const Course& course, const Estimate& e);

}  // namespace headroom::report
