#include "estimator/shadow/kernels/conv_workspace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "estimator/base/error.h"

extern "C" const char headroom_conv_h200[], headroom_conv_h200_end[];

namespace headroom::shadow {
namespace {

/// The nearest calls that are asked: of 2,400 measured calls of public networks 7 told as many as 15 did, and half as
/// often too much as the nearest alone.
constexpr std::size_t voters = 7;
/// Beyond this many bytes a workspace that is no sum of operands still grows with them.
constexpr std::int64_t grows_from = 100'000;

enum Trait : std::uint8_t {
  in_by_8 = 1,
  out_by_8 = 2,
  few_in = 4,
  few_out = 8,
  grouped = 16,
  depthwise = 32,
  in_by_2 = 64,
  out_by_2 = 128
};

/// How unlike two calls with these traits are, beside their sizes.
constexpr float unlike(unsigned different) {
  if (different & (grouped | depthwise)) return std::numeric_limits<float>::infinity();
  return (different & in_by_8 ? 2.0F : 0.0F) + (different & out_by_8 ? 2.0F : 0.0F) +
         (different & in_by_2 ? 1.0F : 0.0F) + (different & out_by_2 ? 1.0F : 0.0F) +
         (different & few_in ? 5.0F : 0.0F) + (different & few_out ? 5.0F : 0.0F);
}

constexpr auto unlikeness = [] {
  std::array<float, 256> table{};
  for (unsigned i = 0; i < table.size(); ++i) table[i] = unlike(i);
  return table;
}();

/// Reads the table's text from front to back.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  bool at_digit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail();
  }
  /// A positive number, or 0 where the format allows it.
  std::int64_t number() {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    if (error != std::errc{} || n < 0) fail();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return n;
  }
  std::int64_t positive() {
    const std::int64_t n = number();
    if (n == 0) fail();
    return n;
  }
  /// "3x5", or "3" for both.
  Dims pair() {
    const std::int64_t first = number();
    return {first, take('x') ? number() : first};
  }
  void skip_line() { skip(std::min(rest_.find('\n'), rest_.size() - 1) + 1); }
  /// So many characters.
  std::string_view skip(std::size_t count) {
    if (count > rest_.size()) fail();
    const std::string_view skipped = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return skipped;
  }
  [[noreturn]] void fail() const {
    throw bad_input("the table of convolution workspaces is malformed", std::string(rest_.substr(0, 40)),
                    "write it again with scripts/conv-table");
  }

 private:
  std::string_view rest_;
};

}  // namespace

ConvOperands operands_of(const ConvShape& s, std::int64_t multiple) {
  const auto padded = [&](std::int64_t channels) {
    return (channels / s.groups + multiple - 1) / multiple * multiple * s.groups;
  };
  const auto bytes = [&](std::int64_t outer, std::int64_t inner, const Dims& sizes) {
    Dims all{outer, inner};
    all.insert(all.end(), sizes.begin(), sizes.end());
    return bytes_of(s.dtype, element_count(all));
  };
  const std::int64_t in = padded(s.in_channels), out = padded(s.out_channels);
  return {bytes(s.batch, in, s.input), bytes(s.batch, out, s.output), bytes(in / s.groups, out, s.kernel)};
}

Bytes gradient_of_each_image(const ConvShape& s) {
  return bytes_of(DType::f32,
                  element_count({s.batch, s.in_channels / s.groups, s.out_channels, s.kernel[0], s.kernel[1]}));
}

std::int64_t channel_multiple(DType dtype) { return dtype == DType::f32 ? 4 : 8; }

/// The direct convolution that cuDNN runs for a transposed one: input and output change places.
ConvShape ConvWorkspaces::direct(const ConvShape& shape) {
  ConvShape s = shape;
  if (std::exchange(s.transposed, false)) {
    std::swap(s.in_channels, s.out_channels);
    std::swap(s.input, s.output);
  }
  return s;
}

ConvWorkspaces::Layer ConvWorkspaces::layer_of(const ConvShape& s) {
  return {s.in_channels, s.out_channels, s.groups, s.input[0], s.input[1], s.batch};
}

/// Weights and traits are those that told most of 4,000 measured calls, each left out with its whole layer, from the
/// nearest other.
const std::array<ConvWorkspaces::Weights, 2> ConvWorkspaces::weights{{{0.3F, 1, 1, 1, 0.7F}, {0.3F, 2, 2, 0.5F, 0.4F}}};

ConvWorkspaces::Scale ConvWorkspaces::scale_of(const ConvShape& s) {
  const auto log = [](std::int64_t n) { return std::log(static_cast<float>(std::max<std::int64_t>(n, 1))); };
  const std::int64_t in = s.in_channels / s.groups, out = s.out_channels / s.groups;
  const int traits = (in % 2 == 0 ? in_by_2 : 0) | (out % 2 == 0 ? out_by_2 : 0) | (in % 8 == 0 ? in_by_8 : 0) |
                     (out % 8 == 0 ? out_by_8 : 0) | (s.in_channels <= 4 ? few_in : 0) |
                     (s.out_channels <= 4 ? few_out : 0) | (s.groups > 1 ? grouped : 0) |
                     (s.groups > 1 && s.groups == s.in_channels ? depthwise : 0);
  return {{log(s.batch), log(s.in_channels), log(s.out_channels), log(s.input[0]),
           log(s.batch) + log(s.output[0]) + log(s.output[1])},
          static_cast<std::uint8_t>(traits)};
}

ConvShape ConvWorkspaces::shape_of(const Place& p) {
  const Block& b = *p.block;
  const Layer& l = b.layers[p.index];
  const auto out = [&](std::size_t i, std::int64_t n) {
    return (n + 2 * b.padding[i] - b.dilation[i] * (b.kernel[i] - 1) - 1) / b.stride[i] + 1;
  };
  return {false,
          b.channels_last,
          b.dtype,
          l.batch,
          l.in_channels,
          l.out_channels,
          l.groups,
          b.kernel,
          b.stride,
          b.padding,
          b.dilation,
          {l.height, l.width},
          {out(0, l.height), out(1, l.width)}};
}

std::size_t ConvWorkspaces::Hash::operator()(const ConvShape& s) const {
  std::uint64_t h = 0;
  const auto mix = [&](std::int64_t n) {
    h = (h ^ static_cast<std::uint64_t>(n)) * 0x9e3779b97f4a7c15U;
    h ^= h >> 29;
  };
  for (const std::int64_t n : {static_cast<std::int64_t>(s.dtype), s.batch, s.in_channels, s.out_channels}) mix(n);
  for (const Dims* list : {&s.kernel, &s.stride, &s.input})
    for (const std::int64_t n : *list) mix(n);
  return h;
}

const ConvWorkspaces& ConvWorkspaces::h200() {
  static const ConvWorkspaces table(
      std::string_view(headroom_conv_h200, static_cast<std::size_t>(headroom_conv_h200_end - headroom_conv_h200)));
  return table;
}

void ConvWorkspaces::find_blocks() const {
  Scanner in(text_);
  while (!in.done()) {
    if (in.take('#')) {
      in.skip_line();
      continue;
    }
    Block b;
    b.kernel = in.pair();
    for (const auto& [letter, list] : {std::pair{'s', &b.stride}, {'p', &b.padding}, {'d', &b.dilation}}) {
      in.expect(' ');
      in.expect(letter);
      *list = in.pair();
    }
    if (b.stride[0] == 0 || b.stride[1] == 0) in.fail();
    in.expect(' ');
    b.dtype = in.take('f') ? DType::f32 : in.take('h') ? DType::f16 : in.take('b') ? DType::bf16 : DType::undefined;
    if (b.dtype == DType::undefined) in.fail();
    b.channels_last = in.take('l');
    in.expect(' ');
    const auto length = static_cast<std::size_t>(in.positive());
    in.expect('\n');
    b.text = in.skip(length);
    blocks_.push_back(std::move(b));
  }
}

void ConvWorkspaces::read(Block& b) {
  if (std::exchange(b.read, true)) return;
  Scanner in(b.text);
  Layer l;
  std::vector<std::pair<Layer, Amounts>> calls;
  while (!in.done()) {
    l.in_channels = in.positive();
    in.expect('>');
    l.out_channels = in.positive();
    l.groups = in.take('/') ? in.positive() : 1;
    in.expect(' ');
    const Dims input = in.pair();
    l.height = input[0];
    l.width = input[1];
    const std::size_t first_of_layer = calls.size();
    while (in.take(';')) {
      const std::size_t first = calls.size();
      do {
        l.batch = in.positive();
        calls.push_back({l, {}});
      } while (in.take(','));
      Amounts amounts;
      for (Amount& a : amounts) {
        in.expect(' ');
        if ((a.unknown = in.take('-'))) continue;
        for (const auto& [padded, exact, count] :
             {std::tuple{'x', 'X', &a.input}, {'y', 'Y', &a.output}, {'w', 'W', &a.weight}}) {
          if (in.take(padded)) *count = 1;
          if (in.take(exact)) *count = a.exact = true;
        }
        if (in.take('n')) a.each_image = 1;
        if (in.at_digit()) a.more = in.number();
      }
      for (std::size_t i = first; i < calls.size(); ++i) calls[i].second = amounts;
    }
    std::sort(calls.begin() + static_cast<std::ptrdiff_t>(first_of_layer), calls.end(),
              [](const auto& x, const auto& y) { return x.first < y.first; });
    in.expect('\n');
  }
  for (const auto& [layer, amounts] : calls) {
    b.layers.push_back(layer);
    b.amounts.push_back(amounts);
    b.scales.push_back(scale_of(shape_of({&b, b.layers.size() - 1})));
  }
}

bool ConvWorkspaces::is_complete(const Amounts& amounts) {
  return std::none_of(amounts.begin(), amounts.end(), [](const Amount& a) { return a.unknown; });
}

bool ConvWorkspaces::is_complete(const Place& p) { return p.block && is_complete(p.block->amounts[p.index]); }

ConvWorkspaces::Place ConvWorkspaces::look_up(const ConvShape& s) const {
  for (Block& b : blocks_) {
    if (b.kernel != s.kernel || b.stride != s.stride || b.padding != s.padding || b.dilation != s.dilation ||
        b.dtype != s.dtype || b.channels_last != s.channels_last)
      continue;
    read(b);
    const Layer layer = layer_of(s);
    const auto it = std::lower_bound(b.layers.begin(), b.layers.end(), layer);
    if (it != b.layers.end() && *it == layer) return {&b, static_cast<std::size_t>(it - b.layers.begin())};
  }
  return {};
}

/// The same call in the other type of 16 bits: of 11,764 calls measured in both, the workspaces of 91 % (forward), 95 %
/// (input gradient) and 89 % (weight gradient) are equal.
ConvWorkspaces::Place ConvWorkspaces::in_other_half_type(const ConvShape& s) const {
  if (s.dtype != DType::f16 && s.dtype != DType::bf16) return {};
  ConvShape other = s;
  other.dtype = s.dtype == DType::f16 ? DType::bf16 : DType::f16;
  return look_up(other);
}

/// Among calls of the same geometry, and dtype or the other of 16 bits. In channels_last, where workspaces are small,
/// other dtypes and geometries are as good a guide as none; so they are where a geometry was not measured at all.
std::array<ConvWorkspaces::Neighbours, 2> ConvWorkspaces::nearest(const ConvShape& s) const {
  const auto pointwise = [](const Dims& kernel) { return kernel[0] == 1 && kernel[1] == 1; };
  const Scale own = scale_of(s);
  std::array<Neighbours, 2> best;
  const auto search = [&](bool other_geometries) {
    for (Block& b : blocks_) {
      if (b.channels_last != s.channels_last || pointwise(b.kernel) != pointwise(s.kernel)) continue;
      const bool same = b.kernel == s.kernel && b.stride == s.stride && b.dilation == s.dilation;
      const bool as_wide = bits_of(b.dtype) == bits_of(s.dtype);
      if ((!same || !as_wide) && !s.channels_last && !(other_geometries && as_wide)) continue;
      read(b);
      const float apart = (same ? 0.0F : 1.0F) +
                          (b.dtype == s.dtype ? 0.0F
                           : as_wide          ? 0.1F
                                              : 1.0F) +
                          (b.padding == s.padding ? 0.0F : 0.3F);
      for (std::size_t i = 0; i < b.scales.size(); ++i) {
        const Scale& other = b.scales[i];
        std::array<float, 2> d;
        d.fill(apart + unlikeness[other.traits ^ own.traits]);
        for (std::size_t k = 0; k < own.logarithms.size(); ++k) {
          const float far = std::abs(other.logarithms[k] - own.logarithms[k]);
          for (std::size_t way = 0; way < d.size(); ++way) d[way] += weights[way][k] * far;
        }
        for (std::size_t way = 0; way < d.size(); ++way) {
          Neighbours& near = best[way];
          if (std::isinf(d[way]) || (near.size() == voters && d[way] >= near.back().distance)) continue;
          if (!is_complete(b.amounts[i])) continue;
          if (near.size() == voters) near.pop_back();
          const auto at = std::upper_bound(near.begin(), near.end(), d[way],
                                           [](float distance, const Near& n) { return distance < n.distance; });
          near.insert(at, {d[way], {&b, i}});
        }
      }
    }
  };
  search(false);
  if (best[0].empty()) search(true);
  return best;
}

/// The workspace of `s` when that of another call is written so.
Bytes ConvWorkspaces::told(const Place& p, const ConvShape& s, ConvCall call) {
  const Amount& a = p[call];
  const ConvOperands o = operands_of(s, a.exact ? 1 : channel_multiple(s.dtype));
  const Bytes sum =
      o.input * a.input + o.output * a.output + o.weight * a.weight + gradient_of_each_image(s) * a.each_image;
  if (sum > Bytes(0) || a.more < grows_from) return sum + Bytes(a.more);
  const double grown = static_cast<double>(a.more) * static_cast<double>(operands_of(s, 1).total().count()) /
                       static_cast<double>(operands_of(shape_of(p), 1).total().count());
  return Bytes(static_cast<std::int64_t>(grown));
}

/// Neighbours that tell the same, but for 1 % of the operands, count together, each the more the nearer it is; the
/// nearest of the heaviest group is believed.
Bytes ConvWorkspaces::told_by_most(const Neighbours& near, const ConvShape& s, ConvCall call) {
  const std::int64_t room = std::max<std::int64_t>(1 << 20, operands_of(s, 1).total().count() / 100);
  std::vector<std::pair<Bytes, float>> groups;
  for (const Near& n : near) {
    const Bytes bytes = told(n.place, s, call);
    const float weight = 1 / (n.distance + 0.1F);
    const auto group =
        std::ranges::find_if(groups, [&](const auto& g) { return std::abs((g.first - bytes).count()) <= room; });
    if (group == groups.end())
      groups.emplace_back(bytes, weight);
    else
      group->second += weight;
  }
  return std::ranges::max_element(groups, {}, &std::pair<Bytes, float>::second)->first;
}

std::vector<ConvShape> ConvWorkspaces::asked() const {
  const std::lock_guard lock(mutex_);
  std::vector<ConvShape> out;
  for (const auto& [shape, found] : answers_) out.push_back(shape);
  return out;
}

ConvWorkspace ConvWorkspaces::find(const ConvShape& shape, ConvCall call) const {
  if (shape.transposed && call != ConvCall::weight_gradient)
    call = call == ConvCall::forward ? ConvCall::input_gradient : ConvCall::forward;
  const std::lock_guard lock(mutex_);
  if (blocks_.empty()) find_blocks();
  const auto [it, is_new] = answers_.try_emplace(direct(shape));
  const ConvShape& s = it->first;
  Found& found = it->second;
  if (is_new) {
    found.measured = look_up(s);
    if (!others_ && !is_complete(found.measured)) {
      const Place other = in_other_half_type(s);
      found.near = is_complete(other) ? std::array{Neighbours{{0, other}}, Neighbours{{0, other}}} : nearest(s);
    }
  }
  const bool measured = found.measured.block && !found.measured[call].unknown;
  if (measured) return {told(found.measured, s, call), true};
  if (others_) return others_->find(s, call);
  const Neighbours& near = found.near[call == ConvCall::weight_gradient ? 1 : 0];
  return {near.empty() ? operands_of(s, 1).total() + Bytes(16) : told_by_most(near, s, call), false};
}

void use_conv_workspace(Shadow& m, const ConvShape& shape, ConvCall call) {
  const DeviceFacts& device = m.device();
  const ConvWorkspaces& table = device.convolutions ? *device.convolutions : ConvWorkspaces::h200();
  const bool this_card = device.convolutions || ConvWorkspaces::built_in(device.compute_major, device.sm_count);
  const ConvWorkspace w = table.find(shape, call);
  if (!w.measured || !this_card) m.note_workspace(operands_of(shape, 1).total());
  if (w.bytes > Bytes(0)) m.workspace(w.bytes);
}

}  // namespace headroom::shadow
