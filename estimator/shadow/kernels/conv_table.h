// ConvTable: measured convolution workspaces as the text that ConvWorkspaces reads (scripts/conv-table describes it).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "estimator/shadow/kernels/conv_workspace.h"

namespace headroom::shadow {

struct MeasuredConv {
  ConvShape shape;                                 ///< direct
  std::array<std::optional<Bytes>, 3> workspaces;  ///< by ConvCall; nullopt where the call failed
};

/// The table of these calls; no call may stand there twice. `title` goes into its first line.
std::string conv_table(std::span<const MeasuredConv> calls, const std::string& title);

}  // namespace headroom::shadow
