#include "calibration/runner/settings.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

namespace headroom::runner {

Autocast::State Autocast::state() const {
  return {at::autocast::is_autocast_enabled(device_), at::autocast::get_autocast_dtype(device_)};
}

// torch/amp/autocast_mode.py: __enter__ and __exit__.
void Autocast::enter(State wanted) {
  at::autocast::set_autocast_enabled(device_, wanted.enabled);
  at::autocast::set_autocast_dtype(device_, wanted.dtype);
  at::autocast::increment_nesting();
  at::autocast::set_autocast_cache_enabled(true);
}

void Autocast::leave(State before) {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, before.enabled);
  at::autocast::set_autocast_dtype(device_, before.dtype);
}

at::Tensor random_state(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_random_state(c10::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

void apply_settings(const Scenario& s, std::uint64_t seed) {
  at::manual_seed(seed);
  auto& context = at::globalContext();
  if (s.precision == Precision::tf32) context.setFloat32MatmulPrecision("high");
  if (s.attention == AttentionBackend::automatic) return;
  context.setSDPUseFlash(s.attention == AttentionBackend::flash);
  context.setSDPUseMemEfficient(s.attention == AttentionBackend::efficient);
  context.setSDPUseMath(s.attention == AttentionBackend::math);
  context.setSDPUseCuDNN(s.attention == AttentionBackend::cudnn);
}

}  // namespace headroom::runner
