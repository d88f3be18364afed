// Profile: what calibration learned of one card and its software. A JSON file that serves on any machine
// (calibration/README.md documents it).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "estimator/base/bytes.h"
#include "estimator/base/diagnostic.h"
#include "estimator/program/scenario.h"
#include "estimator/shadow/kernels/conv_workspace.h"

namespace headroom {

struct Profile {
  /// How well one half of the measured convolutions told the other half.
  struct CrossValidation {
    std::int64_t calls = 0;
    std::int64_t exact = 0;  ///< to the byte
    std::int64_t near = 0;   ///< within 1 % of the operands
    friend bool operator==(const CrossValidation&, const CrossValidation&) = default;
  };
  /// A run that calibration made to see what its factors leave.
  struct Run {
    std::string name;
    Bytes estimated_allocated, measured_allocated, estimated_reserved, measured_reserved, measured_device;
  };

  Device card;  ///< name as CUDA reports it, memory, multiprocessors, compute capability
  std::string driver, torch, cuda, cudnn;
  Bytes context;              ///< device bytes beside the allocator's in the steady state: the most of `runs`
  Bytes context_uncertainty;  ///< the most that one run lay below it
  Bytes cublas_workspace, cublaslt_workspace;
  std::int64_t convolutions = 0;  ///< measured calls
  CrossValidation forward, input_gradient, weight_gradient;
  std::vector<Run> runs;
  std::string convolution_table;  ///< as scripts/conv-table describes it
  bool extends_built_in = false;  ///< other calls are those of headroom's own table of such a card

  /// Of `convolution_table`; null when no convolution was measured.
  const shadow::ConvWorkspaces* workspaces() const { return workspaces_.get(); }
  /// Once `convolution_table` is there.
  void index();

 private:
  std::shared_ptr<const shadow::ConvWorkspaces> workspaces_;
};

std::string profile_text(const Profile& profile);
/// Throws Error(bad_input) on what is no profile.
std::shared_ptr<const Profile> read_profile(const std::string& path);

/// The scenario's profile, read once a process; null when it names none. Throws Error(bad_input).
std::shared_ptr<const Profile> profile_of(const Scenario& scenario);
/// What a profile of other software leaves open.
Diagnostics profile_diagnostics(const Profile& profile, const Scenario& scenario);

}  // namespace headroom
