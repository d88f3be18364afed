// Workspaces of cuDNN's convolutions. cuDNN chooses a kernel per shape; most of its workspace is staging between NCHW
// and NHWC, so it is a sum of input, output and weight bytes. Measured calls are looked up (tables/conv-h200.txt,
// written by scripts/conv-table); any other call takes the sum of the nearest measured one of its kind.
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

  friend bool operator==(const ConvShape&, const ConvShape&) = default;
};

enum class ConvCall : std::uint8_t { forward, input_gradient, weight_gradient };

struct ConvOperands {
  Bytes input, output, weight;
};

struct ConvWorkspace {
  Bytes bytes;
  bool measured = false;  ///< this very call was measured
};

/// Measured workspaces of one card. Safe to use from several threads. A geometry's part of the text is read when a
/// convolution of that geometry is first asked for.
class ConvWorkspaces {
 public:
  /// `table` must outlive this; its format is described in scripts/conv-table.
  explicit ConvWorkspaces(std::string_view table) : text_(table) {}

  /// Throws Error when the table is malformed where it is read.
  ConvWorkspace find(const ConvShape& shape, ConvCall call, const ConvOperands& operands) const;

  static const ConvWorkspaces& h200();

 private:
  /// So many times the operands, and so many bytes more; unknown: not measured.
  struct Amount {
    std::int8_t input = 0, output = 0, weight = 0;
    bool unknown = false;
    std::int64_t more = 0;
  };
  /// What differs between the calls of one geometry.
  struct Layer {
    DType dtype = DType::f32;
    bool channels_last = false;
    std::int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1, height = 0, width = 0;
    friend bool operator==(const Layer&, const Layer&) = default;
  };
  /// Logarithms of batch, channels and height.
  struct Scale {
    float batch = 0, in_channels = 0, out_channels = 0, height = 0;
  };
  struct Entry {
    Layer layer;
    Scale scale;
    Amount amounts[3];
  };
  struct Geometry {
    bool transposed = false;
    Dims kernel, stride, padding, dilation;
    std::string_view text;  ///< the lines of its layers
    bool read = false;
    std::vector<Entry> entries;
  };
  struct Found {
    const Geometry* geometry = nullptr;
    const Entry* entry = nullptr;
    bool measured = false;
  };
  struct Question {
    ConvShape shape;
    ConvCall call;
    friend bool operator==(const Question&, const Question&) = default;
  };
  struct Hash {
    std::size_t operator()(const Question& q) const;
  };

  void find_geometries() const;
  static void read(Geometry& g);
  static Layer layer_of(const ConvShape& s);
  static Scale scale_of(const Layer& l);
  static bool same_kind(const Layer& a, const Layer& b);
  static float distance(const Entry& e, const Layer& l, const Scale& s);
  static ConvOperands operands_of(const Geometry& g, const Layer& l);
  Found search(const Question& q) const;

  std::string_view text_;
  mutable std::mutex mutex_;
  mutable std::vector<Geometry> geometries_;
  mutable std::unordered_map<Question, Found, Hash> answers_;
};

/// Takes and gives back the workspace of a call.
void use_conv_workspace(Shadow& m, const ConvShape& shape, ConvCall call, const ConvOperands& operands);

}  // namespace headroom::shadow
