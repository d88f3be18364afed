// Fit: what is the largest size that fits on each card, and which cards hold a given one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/plan/estimator.h"
#include "estimator/plan/prices.h"

namespace headroom {

struct FitQuestion {
  Scenario scenario;            ///< without a card
  std::vector<Device> devices;  ///< the cards
  /// What is made as large as it fits: "batch", "seq", a dimension's name, or several of them that stay equal,
  /// separated by commas; empty: nothing, the scenario's own sizes are asked about.
  std::string max;
  std::optional<std::int64_t> global_batch;  ///< of one optimizer step; `max` must be empty or "batch"
};

/// How a global batch is made of the micro-batches that one card holds.
struct Accumulation {
  std::int64_t micro_batch = 0;  ///< the largest that divides the global batch and fits, accumulation simulated
  std::int64_t steps = 0;        ///< micro-batches that one card accumulates
  std::int64_t cards = 0;        ///< or so many cards, each with what it holds, without accumulating
  Estimate estimate;             ///< of one card that accumulates
};

struct CardFit {
  Device device;
  std::int64_t max = 0;              ///< largest size that fits; of a question without `max`: 1 when it fits, else 0
  bool at_limit = false;             ///< it may be even larger: the search ends at `size_limit`
  std::optional<Estimate> at;        ///< at `max`, or of the question's own sizes
  std::int64_t next = 0;             ///< the next size; 0: none can be run
  std::optional<Estimate> above;     ///< at `next`: proof that it does not fit
  std::optional<Error> above_fails;  ///< or why the model cannot be run at `next`
  std::optional<Accumulation> accumulation;  ///< absent: not asked, or no micro-batch fits
  std::optional<Price> price;
  std::optional<Error> error;  ///< why there is no answer for this card

  bool fits() const { return !error && max > 0; }
};

/// No size above it is tried.
inline constexpr std::int64_t size_limit = 1'000'000'000;
/// Micro-batches of one optimizer step that are simulated; from the second on each meets the same memory.
inline constexpr std::int64_t simulated_accumulation = 4;

struct FitWork {
  std::size_t threads = 0;                                              ///< 0: one for each core
  std::function<void(std::size_t done)> progress = [](std::size_t) {};  ///< cards done, from any thread
};

/// One answer for each card, in their order: `search_largest` (see there for what "largest" means) with
/// `Estimate::fits`, margin included. Sizes that the model cannot be run at (a height that the network cannot halve
/// five times) are not tried: the first three that run give the distance. Throws Error(usage) when the model has no
/// such dimension, and what the smallest size throws.
std::vector<CardFit> fit(Estimator& estimator, const FitQuestion& question, const FitWork& work = {});

}  // namespace headroom
