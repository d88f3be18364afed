// Difference: what grew between two estimates, in which category and where in the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/plan/estimate.h"
#include "estimator/program/scenario_text.h"

namespace headroom {

/// What of an estimate is compared: of one just made, or of one that was saved as JSON (by another version too, so
/// categories are names).
struct Footprint {
  struct Owned {
    std::string module, category;
    Bytes bytes;
  };
  struct Category {
    std::string name;
    Bytes bytes;
  };
  std::string model;
  std::int64_t parameters = 0;
  std::vector<ScenarioText> scenario;
  Bytes allocated, reserved, device;  ///< peaks
  std::string place;                  ///< of the peak: "backward, aten::mm in h.0.mlp"
  std::vector<Category> categories;   ///< "rounding" among them; they sum to `allocated`
  std::vector<Owned> owners;
};

struct Change {
  std::string name;
  Bytes before, after;

  Bytes bytes() const { return after - before; }
};

/// A line of the module tree, numbered siblings taken together ("h.*.mlp").
struct ModuleChange {
  Change change;         ///< its children's too
  int depth = 0;         ///< below the lines before it
  int modules = 0;       ///< that the line stands for
  std::string category;  ///< that changed most in it
};

struct SettingChange {
  std::string name, before, after;  ///< "" where it is not set
};

struct Difference {
  Footprint before, after;
  std::vector<SettingChange> settings;  ///< flags of the scenario that differ
  std::vector<Change> categories;       ///< all that are in one of the two, by how much they changed
  std::vector<ModuleChange> modules;    ///< the tree, without what hardly changed
};

Difference difference(Footprint before, Footprint after);

/// How much more is borne: an amount, or a share of what it was.
struct Tolerance {
  std::optional<Bytes> bytes;
  double share = 0;
};
/// "100MiB", "5%"; nullopt when it is neither.
std::optional<Tolerance> parse_tolerance(std::string_view text);
/// Whether the allocated or the reserved peak grew by more.
bool exceeds(const Difference& d, const Tolerance& tolerance);

}  // namespace headroom
