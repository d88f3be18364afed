// What a process holds on the card beside the allocator: CUDA context, loaded kernels and libraries.
#pragma once

#include "estimator/base/bytes.h"
#include "estimator/plan/profile.h"
#include "estimator/program/scenario.h"

namespace headroom {

struct DeviceMemory {
  Bytes context;      ///< context and libraries in the steady state of a training step
  Bytes uncertainty;  ///< what that can be short by on this card
};

/// Measured on an H200 (driver 580, CUDA 13.0, torch 2.11): 518 MiB after the context is made; after three training
/// steps of 22 networks 742 to 760 MiB (the more where cuDNN or half precision was used), 630 MiB in the two that never
/// called cuBLAS. Other cards: the same figure, the whole of it uncertain. With a profile: what it measured.
DeviceMemory device_memory(const Device& device, bool uses_blas, const Profile* profile);

}  // namespace headroom
