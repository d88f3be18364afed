// Workspaces of cuDNN's convolutions. cuDNN chooses a kernel per shape; most of its workspace is staging between NCHW
// and NHWC, so it is a sum of input, output and weight bytes; a pointwise convolution's weight gradient is often one in
// float32 for each image. Measured calls are looked up (tables/conv-h200.txt, written by scripts/conv-table); any other
// call takes what most of the nearest measured ones of its kind tell.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
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
  Dims kernel, stride, padding, dilation;
  Dims input, output;  ///< sizes of the maps

  friend bool operator==(const ConvShape&, const ConvShape&) = default;
};

struct ConvOperands {
  Bytes input, output, weight;
  Bytes total() const { return input + output + weight; }
};
/// Bytes of a weight gradient in float32 for each image of the batch.
Bytes gradient_of_each_image(const ConvShape& shape);
/// Bytes of the operands when the channels of each group are padded to a multiple.
ConvOperands operands_of(const ConvShape& shape, std::int64_t channel_multiple);
/// Channels that tensor cores read at once: 16 bytes.
std::int64_t channel_multiple(DType dtype);

enum class ConvCall : std::uint8_t { forward, input_gradient, weight_gradient };

struct ConvWorkspace {
  Bytes bytes;
  bool measured = false;  ///< this very call was measured
};

/// Measured workspaces of one card. Safe to use from several threads. A block of the text is read when a convolution of
/// its geometry and dtype is first asked for.
class ConvWorkspaces {
 public:
  /// `table` must outlive this; its format is described in scripts/conv-table. What it has not measured is asked of
  /// `others`, where given: measured on a card of the same kind.
  explicit ConvWorkspaces(std::string_view table, const ConvWorkspaces* others = nullptr)
      : text_(table), others_(others) {}

  /// Throws Error when the table is malformed where it is read.
  ConvWorkspace find(const ConvShape& shape, ConvCall call) const;

  /// The direct convolutions that were asked for so far, in no order.
  std::vector<ConvShape> asked() const;

  static const ConvWorkspaces& h200();
  /// The table that was measured on such a card; null: none was.
  static const ConvWorkspaces* built_in(int compute_major, int sm_count) {
    return compute_major == 9 && sm_count == 132 ? &h200() : nullptr;
  }

 private:
  /// So many times the operands and a weight gradient of each image, and so many bytes more.
  struct Amount {
    std::int8_t input = 0, output = 0, weight = 0, each_image = 0;
    bool unknown = false;  ///< not measured
    bool exact = false;    ///< channels as they are, not padded to what tensor cores read
    std::int64_t more = 0;
  };
  using Amounts = std::array<Amount, 3>;  ///< by ConvCall
  /// What differs between the calls of one block; in this order.
  struct Layer {
    std::int64_t in_channels = 0, out_channels = 0, groups = 1, height = 0, width = 0, batch = 0;
    friend auto operator<=>(const Layer&, const Layer&) = default;
  };
  /// What makes cuDNN choose: logarithms of batch, channels, height and output pixels, and yes-or-no traits.
  struct Scale {
    std::array<float, 5> logarithms{};
    std::uint8_t traits = 0;
  };
  using Weights = std::array<float, 5>;  ///< of the logarithms
  static const std::array<Weights, 2> weights;
  /// The measured calls of one geometry and dtype, sorted by layer.
  struct Block {
    Dims kernel, stride, padding, dilation;
    DType dtype = DType::f32;
    bool channels_last = false;
    std::string_view text;  ///< its lines
    bool read = false;
    std::vector<Layer> layers;
    std::vector<Scale> scales;
    std::vector<Amounts> amounts;
  };
  /// A place in a block; none where `block` is null.
  struct Place {
    const Block* block = nullptr;
    std::size_t index = 0;
    const Amount& operator[](ConvCall call) const { return block->amounts[index][static_cast<std::size_t>(call)]; }
  };
  struct Near {
    float distance = 0;
    Place place;
  };
  using Neighbours = std::vector<Near>;  ///< the nearest first
  struct Found {
    Place measured;
    std::array<Neighbours, 2> near;  ///< for the first two calls, and for the weight gradient
  };
  struct Hash {
    std::size_t operator()(const ConvShape& s) const;
  };

  void find_blocks() const;
  static void read(Block& b);
  static ConvShape direct(const ConvShape& shape);
  static Layer layer_of(const ConvShape& s);
  static Scale scale_of(const ConvShape& s);
  static ConvShape shape_of(const Place& p);
  /// Whether all three calls were measured.
  static bool is_complete(const Amounts& amounts);
  static bool is_complete(const Place& p);
  Place look_up(const ConvShape& s) const;
  Place in_other_half_type(const ConvShape& s) const;
  std::array<Neighbours, 2> nearest(const ConvShape& s) const;
  static Bytes told(const Place& p, const ConvShape& s, ConvCall call);
  static Bytes told_by_most(const Neighbours& near, const ConvShape& s, ConvCall call);

  std::string_view text_;
  const ConvWorkspaces* others_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::deque<Block> blocks_;
  mutable std::unordered_map<ConvShape, Found, Hash> answers_;
};

/// Takes and gives back the workspace of a call.
void use_conv_workspace(Shadow& m, const ConvShape& shape, ConvCall call);

}  // namespace headroom::shadow
