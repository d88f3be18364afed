// Settings of PyTorch that act on the calls that follow: autocast, random numbers, attention backends.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "estimator/base/dtype.h"
#include "estimator/program/scenario.h"

namespace headroom::runner {

/// torch.autocast(device, ...) as a pair of __enter__ and __exit__ on this thread.
class Autocast {
 public:
  explicit Autocast(c10::DeviceType device) : device_(device) {}
  struct State {
    bool enabled;
    c10::ScalarType dtype;
  };
  State state() const;
  void enter(State wanted);
  void leave(State before);

 private:
  c10::DeviceType device_;
};

/// The device's default generator.
at::Tensor random_state(c10::Device device);
void set_random_state(c10::Device device, const at::Tensor& state);

/// Seeds, and sets what `s` says of kernels.
void apply_settings(const Scenario& s, std::uint64_t seed);

}  // namespace headroom::runner
