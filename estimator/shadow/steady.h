// Steady: a step that begins as the one before it began does what that one did.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/shadow/portrait.h"
#include "estimator/shadow/recorder.h"

namespace headroom::shadow {

class Steady {
 public:
  explicit Steady(Recorder& recorder) : recorder_(recorder) {}

  /// A portrait to be filled and given to `repeat`.
  Portrait portrait() { return Portrait(recorder_, numbers_); }
  /// Between two steps: `now` is what lives. True when the portraits before and after the last step are equal and its
  /// trace was therefore appended again, as that of step `step`.
  bool repeat(Portrait now, int step);
  /// The same once that was so: what the machine holds is not touched any more.
  bool reached() const { return reached_; }
  void repeat(int step);

 private:
  Recorder& recorder_;
  std::uint64_t numbers_ = 0;        ///< that portraits gave
  std::optional<Portrait> before_;   ///< the last step that was executed
  Recorder::Mark begin_{}, end_{};   ///< of its trace
  std::vector<std::int32_t> after_;  ///< blocks that lived then, in the portrait's order
  std::vector<std::int32_t> now_;    ///< blocks that live now
  bool reached_ = false;
};

}  // namespace headroom::shadow
