// Estimator: many questions about one model. The file is read once; questions of the same sizes share their programs,
// questions that differ in the card's memory or the allocator's options only share their trace.
#pragma once

#include <memory>

#include "estimator/plan/estimate.h"
#include "estimator/plan/recent.h"
#include "estimator/plan/shaped_programs.h"
#include "estimator/plan/step_trace.h"

namespace headroom {

class Estimator {
 public:
  /// Reads the file. Throws Error.
  explicit Estimator(const std::filesystem::path& path);
  explicit Estimator(std::shared_ptr<const Model> model);

  /// What `headroom::estimate` answers, to the byte. From any thread. Questions asked one after another share most when
  /// those of the same sizes follow each other: of programs and traces the newest few are kept, fewer of a large model.
  Estimate estimate(const Scenario& scenario, Stages* stages = nullptr);

  /// What the scenario's steps ask of the allocator, from one who knows it already.
  void know(const Scenario& scenario, StepTrace trace);

  /// Of the scenario's sizes; those that an estimate runs, unless what the file's metadata tells cannot run.
  std::shared_ptr<const ShapedPrograms> programs(const Scenario& scenario);

  const Model& model() const { return *model_; }

 private:
  std::shared_ptr<const Model> model_;
  Recent<Scenario, ShapedPrograms> programs_;
  Recent<Scenario, StepTrace> traces_;
};

}  // namespace headroom
