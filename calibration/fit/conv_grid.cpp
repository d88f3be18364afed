#include "calibration/fit/conv_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace headroom {
namespace {

struct Geometry {
  int height, width, stride, dilation, weight;
  int padding(int kernel) const { return same ? dilation * (kernel - 1) / 2 : 0; }
  bool same = true;  ///< the map keeps its size, but for the stride
  bool pointwise() const { return height * width == 1; }
  bool patches() const { return stride >= 4 && stride == height; }
  bool wide() const { return stride == 1 && std::min(height, width) >= 5; }
  bool stem() const { return patches() || (height >= 7 && stride > 1); }
};
/// A list to draw from by weight.
template <class T, std::size_t N>
struct Weighted {
  std::array<T, N> list;
  int total = 0;
};
template <class T, std::size_t N>
constexpr Weighted<T, N> weighted(const T (&list)[N]) {
  Weighted<T, N> w{.list = std::to_array(list)};
  for (const T& one : list) w.total += one.weight;
  return w;
}

/// By how many layers of 140 public networks have them.
constexpr auto geometries =
    weighted<Geometry>({{3, 3, 1, 1, 60},          {1, 1, 1, 1, 60},       {3, 3, 2, 1, 20},       {1, 1, 2, 1, 10},
                        {2, 2, 2, 1, 8},           {4, 4, 2, 1, 8},        {5, 5, 1, 1, 8},        {7, 7, 1, 1, 6},
                        {7, 7, 2, 1, 4},           {5, 5, 2, 1, 3},        {4, 4, 4, 1, 2, false}, {3, 3, 1, 2, 2},
                        {4, 4, 1, 1, 2, false},    {3, 3, 1, 1, 2, false}, {3, 3, 2, 1, 2, false}, {3, 3, 1, 4, 1},
                        {16, 16, 16, 1, 1, false}, {8, 8, 8, 1, 1, false}, {1, 7, 1, 1, 1},        {7, 1, 1, 1, 1},
                        {1, 3, 1, 1, 1},           {3, 1, 1, 1, 1},        {1, 5, 1, 1, 1}});

struct Choice {
  int value, weight;
};
/// Images, and how often a network has halved them.
constexpr auto images = weighted<Choice>({{224, 30},
                                          {256, 16},
                                          {64, 10},
                                          {32, 8},
                                          {128, 8},
                                          {512, 7},
                                          {384, 4},
                                          {192, 4},
                                          {320, 4},
                                          {96, 4},
                                          {299, 3},
                                          {160, 3},
                                          {640, 2},
                                          {288, 2},
                                          {240, 2},
                                          {300, 2},
                                          {28, 1},
                                          {48, 1}});
constexpr auto halvings = weighted<Choice>({{0, 8}, {1, 10}, {2, 20}, {3, 24}, {4, 24}, {5, 16}, {6, 3}});
constexpr auto channels = weighted<Choice>(
    {{8, 2},    {16, 6},   {24, 3},   {32, 12},  {40, 3},   {48, 6},   {56, 1},   {64, 12},  {72, 3},   {80, 3},
     {88, 1},   {96, 6},   {112, 3},  {120, 2},  {128, 12}, {144, 6},  {160, 6},  {176, 1},  {192, 6},  {208, 1},
     {224, 2},  {240, 3},  {256, 12}, {288, 3},  {320, 6},  {336, 1},  {352, 1},  {384, 6},  {416, 1},  {448, 1},
     {480, 3},  {512, 12}, {528, 1},  {576, 3},  {640, 2},  {672, 3},  {704, 1},  {728, 1},  {768, 3},  {800, 1},
     {832, 1},  {864, 1},  {896, 1},  {928, 1},  {960, 3},  {1024, 6}, {1056, 1}, {1152, 3}, {1248, 1}, {1280, 3},
     {1344, 1}, {1440, 1}, {1536, 3}, {1664, 1}, {1792, 1}, {1920, 1}, {2048, 3}});
constexpr auto batches =
    weighted<Choice>({{1, 4},  {2, 5},  {3, 2},  {4, 5},  {6, 3},  {8, 7},  {12, 3},  {16, 7},  {20, 1},  {24, 4},
                      {32, 7}, {40, 1}, {48, 3}, {64, 7}, {80, 1}, {96, 3}, {112, 1}, {128, 5}, {192, 2}, {256, 3}});
/// Images, masks and classes: what a network's last convolution makes, or, transposed, reads.
constexpr auto heads = weighted<Choice>(
    {{1, 3}, {2, 1}, {3, 4}, {4, 2}, {10, 1}, {19, 2}, {20, 1}, {21, 3}, {80, 1}, {91, 1}, {100, 1}, {150, 2}});
constexpr auto expansions = weighted<Choice>({{3, 1}, {4, 2}, {6, 2}});
/// Channels times side, of 98 % of those networks' layers.
constexpr int narrowest = 400, widest = 34'000;
/// Of the layers, in percent: networks that permute between their layers, and those trained so.
constexpr int channels_last = 12;
/// Of wide depthwise ones: ConvNeXt and what came after it permute around them.
constexpr int wide_depthwise_last = 60;
/// Networks that are drawn to learn which layers are likely, and the likely calls that come first.
constexpr int drawn_layers = 500'000;
constexpr std::size_t likely_calls = 300'000;
/// One call of so many is a random one, for what is rare.
constexpr std::size_t one_random_of = 5;
/// Bytes of the largest operand: beyond them cuDNN might take another kernel for want of memory.
constexpr double largest_operand = 1'300'000'000;
constexpr double most_work = 3e11;
/// Operations and seconds of the card and the CPU that a call may cost before it comes the later the more it costs: one
/// call in ten took three quarters of the card's time.
constexpr double much_work = 1.5e10;
/// A call in groups takes the card as long as one of so many times its operations (measured).
constexpr double grouped_work = 16;
/// For each call in groups in channels_last cuDNN compiles a kernel, in a quarter of a second to more than one: they
/// come so much later.
constexpr double compiled = 6;
/// Bytes of input and output below which a workspace is lost in the rounding.
constexpr double small = 1 << 20;

// The distributions of <random> differ between libraries; these do not.
int below(std::mt19937& r, int n) { return static_cast<int>(r() % static_cast<unsigned>(n)); }
bool chance(std::mt19937& r, int percent) { return below(r, 100) < percent; }

template <class T, std::size_t N>
const T& one_of(std::mt19937& r, const Weighted<T, N>& w) {
  int at = below(r, w.total);
  return *std::ranges::find_if(w.list, [&](const T& one) { return (at -= one.weight) < 0; });
}

/// As wide as networks are at this size of the map.
int channels_at(std::mt19937& r, int side) {
  while (true)
    if (const int c = one_of(r, channels).value; (c * side >= narrowest || c >= 128) && c * side <= widest) return c;
}

/// A layer as a network has it, without batch and dtype.
struct Layer {
  const Geometry* geometry = nullptr;
  int in_channels = 0, out_channels = 0, groups = 1, height = 0, width = 0;
  bool channels_last = false;
  friend bool operator==(const Layer&, const Layer&) = default;
};

struct Hash {
  std::size_t operator()(const Layer& l) const {
    std::uint64_t h = 0;
    for (const int n : {static_cast<int>(l.geometry - geometries.list.data()), l.in_channels, l.out_channels, l.groups,
                        l.height, l.width, l.channels_last ? 1 : 0})
      h = (h ^ static_cast<std::uint64_t>(n)) * 0x9e3779b97f4a7c15U, h ^= h >> 29;
    return h;
  }
};

/// How a layer's channels in and out belong together, one of them being as wide as the network there.
enum Relation {
  same,
  widened,   ///< twice as many out
  narrowed,  ///< half as many out
  expanded,  ///< three to six times as many, at one side
  squeezed,  ///< a sixteenth, at one side
  joined,    ///< in: a part more, or four times as many
  other,
  image,  ///< few in
  head,   ///< few out
  depthwise,
  grouped
};
/// In percent, by the layers of those networks.
constexpr auto of_pointwise =
    weighted<Choice>({{same, 12}, {widened, 8}, {narrowed, 8}, {expanded, 26}, {squeezed, 8}, {other, 28}, {head, 10}});
constexpr auto of_plain = weighted<Choice>({{same, 28},
                                            {widened, 13},
                                            {narrowed, 12},
                                            {depthwise, 14},
                                            {image, 9},
                                            {other, 7},
                                            {expanded, 6},
                                            {joined, 4},
                                            {grouped, 4},
                                            {head, 4}});
constexpr auto of_wide =
    weighted<Choice>({{depthwise, 70}, {same, 7}, {other, 7}, {image, 6}, {expanded, 5}, {widened, 3}, {head, 2}});
constexpr auto of_stride = weighted<Choice>(
    {{same, 20}, {widened, 24}, {depthwise, 22}, {image, 12}, {grouped, 8}, {other, 8}, {expanded, 6}});
constexpr auto of_halving = weighted<Choice>({{widened, 75}, {image, 17}, {same, 4}, {other, 4}});
constexpr auto of_projection = weighted<Choice>({{widened, 60}, {other, 30}, {same, 5}, {expanded, 5}});

Relation relation(std::mt19937& r, const Geometry& g) {
  if (g.patches()) return image;
  const int drawn = g.stride == 1       ? g.pointwise() ? one_of(r, of_pointwise).value
                                          : g.wide()    ? one_of(r, of_wide).value
                                                        : one_of(r, of_plain).value
                    : g.pointwise()     ? one_of(r, of_projection).value
                    : g.height % 2 == 0 ? one_of(r, of_halving).value
                                        : one_of(r, of_stride).value;
  return static_cast<Relation>(drawn);
}

/// Sets channels and groups of a layer that is `c` wide.
void connect(Layer& l, std::mt19937& r, Relation relation, int c) {
  l.in_channels = l.out_channels = c;
  const auto at_one_side = [&](int n) { (chance(r, 50) ? l.in_channels : l.out_channels) = n; };
  switch (relation) {
    case same:
      break;
    case widened:
      l.out_channels = 2 * c;
      break;
    case narrowed:
      l.in_channels = 2 * c;
      break;
    case expanded:
      at_one_side(one_of(r, expansions).value * c);
      break;
    case squeezed:
      at_one_side(std::max(c / 16, 8));
      break;
    case joined:
      l.in_channels = c + (chance(r, 50) ? c / 2 : 3 * c);
      break;
    case other:
      at_one_side(one_of(r, channels).value);
      break;
    case image:
      l.in_channels = chance(r, 75) ? 3 : one_of(r, heads).value;
      break;
    case head:
      l.out_channels = one_of(r, heads).value;
      break;
    case depthwise:
      l.groups = c;
      break;
    case grouped:
      l.groups = c % 32 == 0 ? 32 : 1;
      break;
  }
}

Layer random_layer(std::mt19937& r) {
  Layer l{.geometry = &one_of(r, geometries)};
  const Geometry& g = *l.geometry;
  const Relation drawn = relation(r, g);
  const int size = one_of(r, images).value, halved = g.stem() ? 0 : one_of(r, halvings).value;
  const bool pooled = g.pointwise() && g.stride == 1 && chance(r, 4);
  const int side = pooled ? 1 : (size + (1 << halved) - 1) >> halved;
  l.height = g.height == 1 && g.width > 1 && chance(r, 30) ? 1 : side;  // or a sequence
  l.width = side;
  l.channels_last = chance(r, drawn == depthwise && g.wide() ? wide_depthwise_last : channels_last);
  connect(l, r, drawn, channels_at(r, std::max(side / g.stride, 1)));
  return l;
}

ConvProbe probe_of(const Layer& l, int batch, DType dtype) {
  const Geometry& g = *l.geometry;
  return {.in_channels = l.in_channels,
          .out_channels = l.out_channels,
          .groups = l.groups,
          .batch = batch,
          .kernel = {g.height, g.width},
          .stride = {g.height > 1 || g.width == 1 ? g.stride : 1, g.stride},
          .padding = {g.padding(g.height), g.padding(g.width)},
          .dilation = {g.dilation, g.dilation},
          .input = {l.height, l.width},
          .dtype = dtype,
          .channels_last = l.channels_last};
}

/// What knowing a call is worth beside what it costs, from 0 (not to be asked for) to 1.
double worth(const ConvProbe& p) {
  const auto out = [&](std::size_t i) {
    return (p.input[i] + 2 * p.padding[i] - p.dilation[i] * (p.kernel[i] - 1) - 1) / p.stride[i] + 1;
  };
  for (const std::size_t i : {0U, 1U})
    if (p.input[i] + 2 * p.padding[i] < p.dilation[i] * (p.kernel[i] - 1) + 1) return 0;
  const double element = p.dtype == DType::f32 ? 4 : 2;
  const double pixels = static_cast<double>(p.batch * out(0) * out(1));
  const double input = element * static_cast<double>(p.batch * p.in_channels * p.input[0] * p.input[1]);
  const double output = element * pixels * static_cast<double>(p.out_channels);
  const double work = 2 * pixels * (p.groups > 1 ? grouped_work : 1) *
                      static_cast<double>(p.out_channels * p.in_channels / p.groups * p.kernel[0] * p.kernel[1]);
  if (std::max(input, output) > largest_operand || work > most_work) return 0;
  return std::min(1.0, much_work / work) * std::clamp((input + output) / small, 0.3, 1.0) /
         (p.groups > 1 && p.channels_last ? compiled : 1);
}

constexpr std::array dtypes{DType::f32, DType::bf16};

}  // namespace

ConvGrid::ConvGrid() {
  std::vector<std::pair<Layer, int>> layers;  // and how often each was drawn
  std::unordered_map<Layer, std::size_t, Hash> places(drawn_layers / 2);
  for (int i = 0; i < drawn_layers; ++i) {
    const Layer l = random_layer(random_);
    const auto [place, fresh] = places.try_emplace(l, layers.size());
    if (fresh) layers.emplace_back(l, 0);
    ++layers[place->second].second;
  }
  struct Candidate {
    double score;
    std::size_t layer;
    int batch;
    DType dtype;
  };
  std::vector<Candidate> calls;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& [layer, times] = layers[i];
    if (times == 1) continue;
    for (const Choice& batch : batches.list)
      for (const DType dtype : dtypes)
        calls.push_back({times * batch.weight * worth(probe_of(layer, batch.value, dtype)), i, batch.value, dtype});
  }
  const auto first = [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score
                              : std::tie(a.layer, a.batch, a.dtype) < std::tie(b.layer, b.batch, b.dtype);
  };
  const std::size_t count = std::min(likely_calls, calls.size());
  std::partial_sort(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(count), calls.end(), first);
  for (std::size_t i = 0; i < count && calls[i].score > 0; ++i)
    likeliest_.push_back(probe_of(layers[calls[i].layer].first, calls[i].batch, calls[i].dtype));
}

ConvProbe ConvGrid::next() {
  if (++given_ % one_random_of != 0 && likely_given_ < likeliest_.size()) return likeliest_[likely_given_++];
  while (true) {
    const ConvProbe p = probe_of(random_layer(random_), one_of(random_, batches).value, dtypes[random_() % 2]);
    if (chance(random_, static_cast<int>(std::ceil(100 * worth(p))))) return p;
  }
}

}  // namespace headroom
