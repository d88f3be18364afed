// Dispatch: an ATen call by name through PyTorch's dispatcher, as Python's bindings make it.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/program/program.h"

namespace headroom::runner {

class Dispatch {
 public:
  /// Factories make their tensors on `device`.
  explicit Dispatch(c10::Device device) : device_(device) {}

  /// Calls `op` ("aten::add.Tensor") with arguments in the schema's order; what is Unset takes the schema's default.
  /// Returns the results, Tensor[] flattened. Throws Error(bad_input) for an operator or argument that this PyTorch
  /// does not have.
  std::vector<c10::IValue> call(std::string_view op, std::span<const Arg> args, std::span<const c10::IValue> slots);

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };

  c10::Device device_;
  std::unordered_map<std::string, c10::OperatorHandle, TextHash, std::equal_to<>> handles_;
};

}  // namespace headroom::runner
