// VariedSizes: the sizes that a search makes larger together: `--max batch`, `seq`, `resolution`, `height,width`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/plan/shaped_programs.h"
#include "estimator/program/scenario.h"
#include "estimator/read/graph.h"

namespace headroom {

class VariedSizes {
 public:
  /// `names`: separated by commas. "batch" and "seq" as --batch and --seq; "resolution" every side of every image, also
  /// where the file fixes it (as --shape); else a dimension's name. Throws Error(usage).
  VariedSizes(const Model& model, const std::string& names);

  bool none() const { return names_.empty(); }
  /// The scenario at size `n`.
  Scenario at(Scenario scenario, std::int64_t n) const;
  /// Throws Error(usage) when one of the names is of nothing that can be varied: it would fit without end.
  void check(const ShapedPrograms& programs) const;

 private:
  /// An image among the inputs: its sides have no name, so that its whole shape has to be given.
  struct Image {
    std::string input;
    std::vector<Dim> dims;
    std::vector<std::size_t> sides;  ///< axes
  };

  void find_images();

  const Model& model_;
  std::vector<std::string> names_;
  std::vector<std::string> named_sides_;  ///< of "resolution": dimensions with a name
  std::vector<Image> images_;             ///< and images without
};

}  // namespace headroom
