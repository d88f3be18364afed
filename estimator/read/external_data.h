// ExternalData: the file beside a model that its weights lie in.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "estimator/read/descriptor.h"
#include "estimator/read/graph.h"

namespace headroom {

/// Keeps the file asked for last open: a model has thousands of tensors in one.
class ExternalData {
 public:
  /// `location` as the model spells it, which the caller keeps; an invalid descriptor when it cannot be had, or lies
  /// outside the folder of `model`.
  const Descriptor& file(const std::filesystem::path& model, std::string_view location);

 private:
  std::string_view location_;
  std::optional<Descriptor> file_;
};

/// Of `model`, which owns it.
ExternalData& external_data_of(const Model& model);

}  // namespace headroom
