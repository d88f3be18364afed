// Wire: protobuf's encoding, walked field by field with 64-bit sizes and without copies.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace headroom {

static_assert(std::endian::native == std::endian::little, "fixed-width fields are read as they lie in memory");

/// The bytes at `at` are no valid protobuf (or no valid ONNX); `read_model` turns it into an Error with file and
/// offset.
struct WireError {
  const char* at = nullptr;
  const char* what = nullptr;
  const char* hint = nullptr;  ///< may be null: then the usual one, that the file is cut or damaged
};

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, group = 3, group_end = 4, fixed32 = 5 };

/// One field of a message. `key` is the tag as it is on the wire, so a switch tells number and type at once:
///     case varint_field(onnx::TensorProto::kDataTypeFieldNumber):
/// A known number with a foreign type falls through to the default and is skipped, as protobuf does.
struct Field {
  std::uint64_t key = 0;
  std::uint64_t number = 0;     ///< value of a varint, fixed32 or fixed64 field
  std::string_view bytes;       ///< content of a length-delimited field; its data() is never null
  const char* begin = nullptr;  ///< of the tag

  std::int64_t integer() const { return static_cast<std::int64_t>(number); }
  float real() const { return std::bit_cast<float>(static_cast<std::uint32_t>(number)); }
  double real64() const { return std::bit_cast<double>(number); }
};

constexpr std::uint64_t varint_field(int n) { return static_cast<std::uint64_t>(n) << 3; }
constexpr std::uint64_t fixed64_field(int n) { return static_cast<std::uint64_t>(n) << 3 | 1; }
constexpr std::uint64_t bytes_field(int n) { return static_cast<std::uint64_t>(n) << 3 | 2; }
constexpr std::uint64_t fixed32_field(int n) { return static_cast<std::uint64_t>(n) << 3 | 5; }

/// Walks the fields of one message. A field of bytes is stepped over by its length: its content is not touched.
class Wire {
 public:
  explicit Wire(std::string_view message) : at_(message.data()), end_(message.data() + message.size()) {}

  /// Reads the next field; false at the end of the message. Groups (unused by ONNX) are skipped. Throws WireError.
  bool next(Field& field) {
    while (at_ != end_) {
      field.begin = at_;
      field.key = varint();
      if (field.key >> 3 == 0 || field.key >> 32 != 0) throw WireError{field.begin, "field number out of range"};
      switch (static_cast<WireType>(field.key & 7)) {
        case WireType::varint:
          field.number = varint();
          return true;
        case WireType::fixed64:
          field.number = fixed<std::uint64_t>();
          return true;
        case WireType::fixed32:
          field.number = fixed<std::uint32_t>();
          return true;
        case WireType::bytes:
          field.bytes = bytes();
          return true;
        case WireType::group:
          skip_group(field.key);
          continue;
        default:
          throw WireError{field.begin, "unknown kind of field"};
      }
    }
    return false;
  }

  /// For packed fields: plain values one after the other.
  bool done() const { return at_ == end_; }
  std::uint64_t varint() {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) return static_cast<unsigned char>(*at_++);
    if (end_ - at_ >= 2 && static_cast<unsigned char>(at_[1]) < 0x80) {
      const std::uint64_t value =
          (static_cast<unsigned char>(at_[0]) & 0x7Fu) | std::uint64_t{static_cast<unsigned char>(at_[1])} << 7;
      at_ += 2;
      return value;
    }
    return long_varint();
  }
  template <class T>
  T fixed() {
    if (static_cast<std::size_t>(end_ - at_) < sizeof(T)) throw WireError{at_, "a number is cut"};
    T value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

 private:
  std::uint64_t long_varint();
  std::string_view bytes() {
    const char* const begin = at_;
    const std::uint64_t size = varint();
    if (size > static_cast<std::uint64_t>(end_ - at_))
      throw WireError{begin, "a field is longer than what is left of the message around it"};
    const std::string_view content(at_, static_cast<std::size_t>(size));
    at_ += size;
    return content;
  }
  void skip_group(std::uint64_t key);

  const char* at_;
  const char* end_;
};

/// The fields of one message: `for (const Field& field : Fields(message))`. Throws WireError.
class Fields {
 public:
  explicit Fields(std::string_view message) : wire_(message) {}

  struct End {};
  class Iterator {
   public:
    explicit Iterator(Wire& wire) : wire_(wire) {}
    const Field& operator*() const { return field_; }
    Iterator& operator++() { return *this; }
    /// Reads: the one place where a loop does, so that the walk is inlined into it.
    bool operator!=(End) { return wire_.next(field_); }

   private:
    Wire& wire_;
    Field field_;
  };
  Iterator begin() { return Iterator(wire_); }
  End end() const { return {}; }

 private:
  Wire wire_;
};

}  // namespace headroom
