#include "estimator/shadow/kernels/conv_table.h"

#include <map>
#include <string_view>
#include <tuple>

namespace headroom::shadow {
namespace {

/// Beyond the operands a kernel adds at most a tile of 128 x 256 float32 for each of 132 multiprocessors, and tables.
constexpr std::int64_t tiles = 18'000'000;

std::string pair_text(const Dims& d) {
  return d[0] == d[1] ? std::to_string(d[0]) : std::to_string(d[0]) + "x" + std::to_string(d[1]);
}

/// The sum of operands, and what is more, that `bytes` is; the number where it is none.
std::string amount_text(std::optional<Bytes> bytes, const ConvShape& s, ConvCall call) {
  if (!bytes) return "-";
  const std::int64_t n = bytes->count();
  if (n < 1024) return std::to_string(n);
  const ConvOperands exact = operands_of(s, 1), padded = operands_of(s, channel_multiple(s.dtype));
  const auto sum = [](const ConvOperands& o, std::string_view letters) {
    Bytes total;
    for (const char c : letters) total += c == 'x' ? o.input : c == 'y' ? o.output : o.weight;
    return total.count();
  };
  const bool is_pointwise = s.kernel == Dims{1, 1} && s.stride == Dims{1, 1};
  const std::int64_t each = gradient_of_each_image(s).count();
  if (call == ConvCall::weight_gradient && is_pointwise && s.batch > 1 && n >= each && n - each < 1024)
    return "n" + (n > each ? std::to_string(n - each) : "");
  for (const std::int64_t most : {std::int64_t{2048}, tiles})
    for (const std::string letters : {"xyw", "xy", "xw", "yw", "x", "y", "w"})
      for (const bool is_exact : {false, true}) {
        const std::int64_t base = sum(is_exact ? exact : padded, letters);
        if (base < 4096 || n < base || n - base > most) continue;
        std::string out = letters;
        if (is_exact)
          for (char& c : out) c = static_cast<char>(c - 'a' + 'A');
        return out + (n > base ? std::to_string(n - base) : "");
      }
  return std::to_string(n);
}

}  // namespace

std::string conv_table(std::span<const MeasuredConv> calls, const std::string& title) {
  using Layer = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  std::map<std::string, std::map<Layer, std::map<std::string, std::string>>> blocks;
  for (const MeasuredConv& c : calls) {
    const ConvShape& s = c.shape;
    const char* const dtype = s.dtype == DType::f32 ? "f" : s.dtype == DType::f16 ? "h" : "b";
    const std::string head = pair_text(s.kernel) + " s" + pair_text(s.stride) + " p" + pair_text(s.padding) + " d" +
                             pair_text(s.dilation) + " " + dtype + (s.channels_last ? "l" : "");
    std::string amounts;
    for (const ConvCall call : {ConvCall::forward, ConvCall::input_gradient, ConvCall::weight_gradient})
      amounts += " " + amount_text(c.workspaces[static_cast<std::size_t>(call)], s, call);
    std::string& batches = blocks[head][{s.in_channels, s.out_channels, s.groups, s.input[0], s.input[1]}][amounts];
    batches += (batches.empty() ? "" : ",") + std::to_string(s.batch);
  }
  std::string out = "# headroom convolution workspaces 3 | " + title + "\n";
  for (const auto& [head, layers] : blocks) {
    std::string lines;
    for (const auto& [layer, runs] : layers) {
      const auto& [in, co, groups, height, width] = layer;
      lines += std::to_string(in) + ">" + std::to_string(co) + (groups > 1 ? "/" + std::to_string(groups) : "") + " " +
               pair_text({height, width});
      for (const auto& [amounts, batches] : runs) lines += ";" + batches + amounts;
      lines += "\n";
    }
    out += head + " " + std::to_string(lines.size()) + "\n" + lines;
  }
  return out;
}

}  // namespace headroom::shadow
