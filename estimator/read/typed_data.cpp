#include "estimator/read/typed_data.h"

#include <onnx-ml.pb.h>

#include <algorithm>
#include <cstring>

#include "estimator/read/wire.h"

namespace headroom {
namespace {

/// Fills a buffer of known size; remembers when more comes than fits.
class Packer {
 public:
  explicit Packer(std::span<std::byte> to) : to_(to) {}

  /// The low `width` bytes of `word`.
  void put(std::uint64_t word, std::size_t width) {
    if (used_ + width > to_.size()) {
      overfull_ = true;
      return;
    }
    std::memcpy(to_.data() + used_, &word, width);
    used_ += width;
  }
  /// The low six bits of `word`, after those of the last one: four elements in three bytes.
  void put_six_bits(std::uint64_t word) {
    pending_ |= (word & 0x3F) << pending_bits_;
    pending_bits_ += 6;
    if (pending_bits_ == 24) flush();
  }
  void flush() {
    if (pending_bits_ > 0) put(pending_, static_cast<std::size_t>((pending_bits_ + 7) / 8));
    pending_ = 0;
    pending_bits_ = 0;
  }
  bool overfull() const { return overfull_; }
  bool exactly_full() const { return !overfull_ && used_ == to_.size(); }

 private:
  std::span<std::byte> to_;
  std::size_t used_ = 0;
  bool overfull_ = false;
  std::uint64_t pending_ = 0;
  int pending_bits_ = 0;
};

}  // namespace

std::span<const std::byte> decode_typed_data(std::string_view message, DType dtype, std::size_t expected_bytes,
                                             Arena& arena) {
  using Tensor = onnx::TensorProto;
  auto* buffer = static_cast<std::byte*>(arena.allocate(expected_bytes, alignof(std::uint64_t)));
  Packer packer({buffer, expected_bytes});
  const bool six_bits = bits_of(dtype) == 6;
  // Below eight bits an entry of int32_data is one byte of packed elements; but for six bits, where it is one element.
  // No integer is wider than its wire form: complex elements come as floats, anything else is a damaged file.
  const std::size_t width =
      bits_of(dtype) < 8 ? 1 : std::min(static_cast<std::size_t>(bits_of(dtype)) / 8, sizeof(std::uint64_t));
  const auto put_varint = [&](std::uint64_t word) { six_bits ? packer.put_six_bits(word) : packer.put(word, width); };

  Wire wire(message);
  Field field;
  while (!packer.overfull() && wire.next(field)) {
    switch (field.key) {
      case varint_field(Tensor::kInt32DataFieldNumber):
      case varint_field(Tensor::kInt64DataFieldNumber):
      case varint_field(Tensor::kUint64DataFieldNumber):
        put_varint(field.number);
        break;
      case fixed32_field(Tensor::kFloatDataFieldNumber):
        packer.put(field.number, 4);
        break;
      case fixed64_field(Tensor::kDoubleDataFieldNumber):
        packer.put(field.number, 8);
        break;
      case bytes_field(Tensor::kInt32DataFieldNumber):
      case bytes_field(Tensor::kInt64DataFieldNumber):
      case bytes_field(Tensor::kUint64DataFieldNumber):
        for (Wire values(field.bytes); !values.done() && !packer.overfull();) put_varint(values.varint());
        break;
      case bytes_field(Tensor::kFloatDataFieldNumber):
        for (Wire values(field.bytes); !values.done() && !packer.overfull();)
          packer.put(values.fixed<std::uint32_t>(), 4);
        break;
      case bytes_field(Tensor::kDoubleDataFieldNumber):
        for (Wire values(field.bytes); !values.done() && !packer.overfull();)
          packer.put(values.fixed<std::uint64_t>(), 8);
        break;
      default:
        break;
    }
  }
  packer.flush();
  if (!packer.exactly_full()) return {};
  return {buffer, expected_bytes};
}

}  // namespace headroom
