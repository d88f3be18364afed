// Job: one measurement to make, as `headroom` writes it to the runner's standard input (JSON; calibration/README.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.h"
#include "estimator/base/dims.h"
#include "estimator/program/program.h"
#include "estimator/program/scenario.h"

namespace headroom {

/// A direct two-dimensional convolution whose workspaces are asked for.
struct ConvProbe {
  std::int64_t in_channels = 0, out_channels = 0, groups = 1, batch = 0;
  Dims kernel, stride, padding, dilation, input;
  DType dtype = DType::f32;
  bool channels_last = false;
};

struct Job {
  std::string device = "cuda";  ///< "cpu": figures of another allocator, for tests of everything else
  int steps = 3;
  std::uint64_t seed = 0;
  Bytes memory;          ///< cap on the allocator, by the memory fraction; 0: none
  bool history = false;  ///< every event of the allocator, with the call that made it
  bool check = false;    ///< losses and gradients are looked at, and shapes held against `shapes`
  std::string values;    ///< safetensors file with parameters, buffers and inputs by name; "": random
  std::string results;   ///< safetensors file to write the last step's outputs to; "": none
  Scenario scenario;     ///< only what the step reads
  /// Measured instead of programs, one after another, until `seconds` are over.
  std::vector<ConvProbe> convolutions;
  double seconds = 0;
  std::vector<std::shared_ptr<const Program>> programs;
  std::vector<std::size_t> order;  ///< program of step i: order[i % order.size()]
  /// By program and slot: the sizes that binding gave the value; nullopt where it is not one of the file's.
  std::vector<std::vector<std::optional<Dims>>> shapes;
};

std::string job_text(const Job& job);

/// Throws Error(bad_input) on anything that is no job, with the JSON path at fault.
Job read_job(std::string_view text);

}  // namespace headroom
