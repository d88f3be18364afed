// Workspaces of cuDNN's convolutions. cuDNN chooses a kernel per shape; most of its workspace is staging between NCHW and
// NHWC, so it is a sum of input, output and weight bytes. Measured calls are looked up (tables/conv-h200.txt, written by
// scripts/conv-table); any other call takes the sum of the nearest measured one of its kind.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

/// A convolution as nn.Conv2d or nn.ConvTranspose2d describes it; every list holds two numbers (height, width).
struct ConvShape {
  bool transposed = false;
  bool channels_last = false;  ///< the layout that input and weight are brought to
  DType dtype = DType::f32;
  std::int64_t batch = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  Dims kernel, stride, padding, dilation, input;
};

enum class ConvCall : std::uint8_t { forward, input_gradient, weight_gradient };

struct ConvOperands {
  Bytes input, output, weight;
};

struct ConvWorkspace {
  Bytes bytes;
  bool measured = false;  ///< this very call was measured
};

/// Measured workspaces of one card. Safe to use from several threads; the text is parsed when first needed.
class ConvWorkspaces {
 public:
  /// `table` must outlive this; its format is described in scripts/conv-table. Throws Error on first use when malformed.
  explicit ConvWorkspaces(std::string_view table) : text_(table) {}

  ConvWorkspace find(const ConvShape& shape, ConvCall call, const ConvOperands& operands) const;

  static const ConvWorkspaces& h200();

 private:
  /// So many times the operands, and so many bytes more; unknown: not measured.
  struct Amount {
    std::int8_t input = 0, output = 0, weight = 0;
    bool unknown = false;
    std::int64_t more = 0;
  };
  struct Entry {
    ConvShape shape;
    ConvOperands operands;
    Amount amounts[3];
  };

  void parse() const;
  void parse_calls(class TableScanner& in, ConvShape layer) const;
  const Entry* nearest(const ConvShape& shape, ConvCall call) const;

  std::string_view text_;
  mutable std::once_flag once_;
  mutable std::vector<Entry> entries_;
  mutable std::unordered_map<std::uint64_t, std::uint32_t> index_;
};

/// Takes and gives back the workspace of a call.
void use_conv_workspace(Shadow& m, const ConvShape& shape, ConvCall call, const ConvOperands& operands);

}  // namespace headroom::shadow
