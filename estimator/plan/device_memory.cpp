#include "estimator/plan/device_memory.h"

namespace headroom {

DeviceMemory device_memory(const Device& device, const Profile* profile) {
  if (profile) return {profile->context, profile->context_uncertainty};
  constexpr Bytes steady{778'043'392};
  if (device.generation == "hopper") return {steady, Bytes(64 * MiB)};
  return {steady, steady};
}

}  // namespace headroom
