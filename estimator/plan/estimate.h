// Estimate: the answer to one question, with everything a reporter prints. `report` does not compute.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/allocate/options.h"
#include "estimator/base/diagnostic.h"
#include "estimator/bind/shaped_graph.h"
#include "estimator/plan/timeline.h"
#include "estimator/program/program.h"
#include "estimator/program/scenario.h"
#include "estimator/read/graph.h"
#include "estimator/shadow/trace.h"

namespace headroom {

/// Where in the run something happens: the allocated peak, the end of the memory.
struct RunPlace {
  Phase phase = Phase::setup;
  int step = 0;
  std::string node;    ///< ONNX or fx node, "optimizer.step", or the tensor that is made outside of the model's calls
  std::string op;      ///< ATen operator
  std::string module;  ///< module path
};

/// A tensor that lives at the peak.
struct LiveTensor {
  Bytes bytes;
  Category category = Category::forward_temporaries;
  std::string name;  ///< parameter path, input, or the node that made it
  std::string op;
  std::string module;
};

/// What a module holds at the peak, its children apart.
struct OwnedBytes {
  std::string module;  ///< path, "" the root; or a statement of the loop: "(loss)", "(optimizer.step)"
  Category category = Category::weights;
  Bytes bytes;
};

/// One named part of what a figure can be short by.
struct MarginPart {
  std::string code;  ///< as the diagnostic it comes from, or "block-placement", "context"
  Bytes allocated, reserved, device;
};

struct ModelFacts {
  std::string name;             ///< file name
  std::string path;             ///< as it was given
  std::int64_t parameters = 0;  ///< elements of all parameters, each tied weight once
  std::int64_t trainable = 0;   ///< of them with requires_grad
  Bytes weight_bytes;           ///< as the scenario's precision stores them
  Bytes buffer_bytes;
  std::int64_t nodes = 0;
  std::uint64_t hash = 0;
};

struct Estimate {
  Scenario scenario;
  ModelFacts model;
  Bytes peak_allocated, peak_reserved, peak_device;
  RunPlace at;
  std::vector<PhaseFigures> phases;                ///< all of the run
  std::array<Bytes, category_count> categories{};  ///< requested bytes alive at the peak
  Bytes rounding;               ///< the allocator's, at the peak: with it the parts sum to peak_allocated
  Bytes fragmentation;          ///< reserved peak minus allocated peak
  Bytes context;                ///< CUDA context and libraries, outside the allocator
  Bytes optimizer_state_bytes;  ///< resident after the last step
  Bytes gradient_bytes;         ///< all gradients together, when they live
  std::vector<MarginPart> margins;
  Bytes margin_allocated, margin_reserved, margin_device;
  std::optional<bool> fits;         ///< when a device is named: the run ends, the margin held back
  Bytes spare;                      ///< left of the device, the margin deducted; negative: what is missing
  bool frees_cache = false;         ///< it fits because the allocator gives back cached blocks where it must
  std::optional<Bytes> budget;      ///< that the caller holds the device figure to
  bool out_of_memory = false;       ///< the run on the device ends in OutOfMemoryError, even without margin
  std::string oom_text;             ///< what PyTorch would print
  RunPlace oom_at;                  ///< the allocation that is refused
  std::vector<LiveTensor> largest;  ///< at the peak, by bytes
  std::vector<OwnedBytes> owners;   ///< at the peak, by path and category; with `rounding` they sum to peak_allocated
  std::vector<BoundDim> dims;
  Diagnostics diagnostics;
  double seconds = 0;  ///< work of this process

  bool within_budget() const { return !budget || peak_device <= *budget; }
  /// Whether everything asked of the figure holds: the budget and the card.
  bool holds() const { return within_budget() && fits.value_or(true); }
  Bytes category(Category c) const { return categories[static_cast<std::size_t>(c)]; }
};

/// The stages in between, for `inspect` and for questions that share them. `timeline` is the run that the figures are
/// of.
struct Stages {
  std::shared_ptr<const Model> model;
  std::vector<std::shared_ptr<const ShapedGraph>> graphs;  ///< one per distinct sequence length
  std::vector<std::shared_ptr<const Program>> programs;
  std::shared_ptr<const shadow::Trace> trace;
  AllocatorDevice device;  ///< that `timeline` ran on
  Timeline timeline;
};

/// Reads, binds, recovers, runs the step and the allocator. Throws Error. `stages` (may be null) receives what lies
/// between; `model` (may be null) is used instead of reading `path` again.
///
/// On a device that is named the figures are those of the run there, which gives cached blocks back before it runs out
/// of memory; of a run that ends in OutOfMemoryError they are what it would have needed.
Estimate estimate(const std::filesystem::path& path, const Scenario& scenario, Stages* stages = nullptr,
                  std::shared_ptr<const Model> model = nullptr);

/// The options of the scenario's allocator. Throws Error(usage).
AllocatorOptions allocator_options(const Scenario& scenario);

}  // namespace headroom
