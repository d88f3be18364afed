#include "estimator/plan/device_memory.h"

namespace headroom {

DeviceMemory device_memory(const Device& device, bool uses_blas, const Profile* profile) {
  if (profile) return {profile->context, profile->context_uncertainty};
  const Bytes steady = uses_blas ? Bytes(778'043'392) : Bytes(630 * MiB);
  if (device.generation == "hopper") return {steady, Bytes(64 * MiB)};
  return {steady, steady};
}

}  // namespace headroom
