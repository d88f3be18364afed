#include "estimator/allocate/pickle_reader.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

constexpr std::uint64_t highest_protocol = 5;

/// The pickle machine: a stack of values, marks in it, and a memo.
class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  PlainData read() {
    while (!stopped_) {
      opcode_at_ = at_;
      step(static_cast<unsigned char>(take(1)[0]));
    }
    data_.root = pop();
    return std::move(data_);
  }

 private:
  using Kind = PlainValue::Kind;

  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    throw bad_input("the pickle cannot be read: " + what, fmt::format("{}, byte {}", printable(file_), opcode_at_),
                    std::move(hint));
  }
  [[noreturn]] void refuse(std::string_view opcode) const {
    fail(fmt::format("{} would run code of the file's choice", opcode),
         "a memory snapshot holds plain data only; dump it with torch.cuda.memory._dump_snapshot");
  }

  // ---- bytes

  std::string_view take(std::uint64_t n) {
    if (n > bytes_.size() - at_) {
      fail(fmt::format("it ends after {} bytes, {} more were announced", bytes_.size(), n - (bytes_.size() - at_)),
           "the file is cut off or damaged");
    }
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(n));
    at_ += static_cast<std::size_t>(n);
    return taken;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("it ends inside a line", "the file is cut off or damaged");
    std::string_view text = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    return text;
  }
  std::uint64_t unsigned_le(int bytes) {
    std::uint64_t value = 0;
    const std::string_view taken = take(static_cast<std::uint64_t>(bytes));
    for (std::size_t i = taken.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }
  /// Two's complement of any length, when it fits 64 bits.
  std::int64_t long_le(std::uint64_t length) {
    const std::string_view digits = take(length);
    const bool negative = !digits.empty() && (static_cast<unsigned char>(digits.back()) & 0x80U) != 0;
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = digits.size(); i-- > 0;) {
      const auto byte = static_cast<unsigned char>(digits[i]);
      if (i >= 8 && byte != (negative ? 0xff : 0)) fail("a number has more than 64 bits");
      if (i < 8) value = value << 8 | byte;
    }
    const auto number = static_cast<std::int64_t>(value);
    if ((number < 0) != negative) fail("a number has more than 64 bits");
    return number;
  }
  std::int64_t decimal(std::string_view text) {
    if (!text.empty() && (text.back() == 'L')) text.remove_suffix(1);
    const std::optional<std::int64_t> value = parse_int(text);
    if (!value) fail(fmt::format("'{}' is not a number of 64 bits", printable(text, 40)));
    return *value;
  }
  double real_text(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail("a number with a fraction is malformed");
    return value;
  }

  // ---- stack

  void push(PlainValue value) { stack_.push_back(value); }
  void push_text(std::string_view text) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) fail("a text is longer than 4 GiB");
    push(PlainData::make_text(text));
  }
  std::size_t base() const { return marks_.empty() ? 0 : marks_.back(); }
  PlainValue pop() {
    if (stack_.size() <= base()) fail("it takes a value that is not there");
    const PlainValue value = stack_.back();
    stack_.pop_back();
    return value;
  }
  PlainValue& top() {
    if (stack_.size() <= base()) fail("it takes a value that is not there");
    return stack_.back();
  }
  std::vector<PlainValue> pop_to_mark() {
    if (marks_.empty()) fail("it goes back to a mark that is not there");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PlainValue> values(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return values;
  }
  void push_tuple(std::size_t n) {
    std::vector<PlainValue> values(n);
    for (std::size_t i = n; i-- > 0;) values[i] = pop();
    push(data_.add_list(std::move(values)));
  }
  void push_dict(std::vector<PlainValue> entries) {
    if (entries.size() % 2 != 0) fail("a dict has a key without a value");
    push(data_.add_dict(std::move(entries)));
  }
  void append(const std::vector<PlainValue>& values, Kind kind) {
    if (top().kind != kind)
      fail(kind == Kind::list ? "it appends to what is no list" : "it sets an item of what is no dict");
    if (kind == Kind::dict && values.size() % 2 != 0) fail("a dict has a key without a value");
    std::vector<PlainValue>& contents = data_.contents(top());
    contents.insert(contents.end(), values.begin(), values.end());
  }

  // ---- memo

  void put(std::uint64_t key) { memo_[key] = top(); }
  void get(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail(fmt::format("it refers to value {}, which was never stored", key));
    push(found->second);
  }
  std::uint64_t memo_key(std::string_view text) {
    const std::int64_t key = decimal(text);
    if (key < 0) fail("a memo number is negative");
    return static_cast<std::uint64_t>(key);
  }

  void step(unsigned char opcode) {
    switch (opcode) {
      case 0x80:
        if (unsigned_le(1) > highest_protocol) fail("its protocol is newer than 5");
        return;
      case 0x95:  // FRAME: the length of what follows; of no use here
        if (unsigned_le(8) > bytes_.size() - at_)
          fail("a frame is longer than the file", "the file is cut off or damaged");
        return;
      case '.':
        stopped_ = true;
        return;
      case '(':
        marks_.push_back(stack_.size());
        return;
      case '0':
        if (!marks_.empty() && marks_.back() == stack_.size())
          marks_.pop_back();
        else
          pop();
        return;
      case '1':
        pop_to_mark();
        return;
      case '2':
        push(top());
        return;

      case 'N':
        push({});
        return;
      case 0x88:
        push(PlainData::make_boolean(true));
        return;
      case 0x89:
        push(PlainData::make_boolean(false));
        return;
      case 'I': {
        const std::string_view text = line();
        if (text == "00" || text == "01")
          push(PlainData::make_boolean(text == "01"));
        else
          push(PlainData::make_integer(decimal(text)));
        return;
      }
      case 'L':
        push(PlainData::make_integer(decimal(line())));
        return;
      case 'J':
        push(PlainData::make_integer(static_cast<std::int32_t>(unsigned_le(4))));
        return;
      case 'K':
        push(PlainData::make_integer(static_cast<std::int64_t>(unsigned_le(1))));
        return;
      case 'M':
        push(PlainData::make_integer(static_cast<std::int64_t>(unsigned_le(2))));
        return;
      case 0x8a:
        push(PlainData::make_integer(long_le(unsigned_le(1))));
        return;
      case 0x8b:
        push(PlainData::make_integer(long_le(unsigned_le(4))));
        return;
      case 'F':
        push(PlainData::make_real(real_text(line())));
        return;
      case 'G': {
        std::uint64_t bits = 0;
        for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
        push(PlainData::make_real(std::bit_cast<double>(bits)));
        return;
      }

      case 'S': {
        std::string_view text = line();
        if (text.size() < 2 || text.front() != text.back() || (text.front() != '\'' && text.front() != '"')) {
          fail("a text lacks its quotes");
        }
        push_text(text.substr(1, text.size() - 2));
        return;
      }
      case 'V':
        push_text(line());
        return;
      case 'U':
      case 'C':
      case 0x8c:
        push_text(take(unsigned_le(1)));
        return;
      case 'T':
      case 'X':
      case 'B':
        push_text(take(unsigned_le(4)));
        return;
      case 0x8d:
      case 0x8e:
      case 0x96:
        push_text(take(unsigned_le(8)));
        return;

      case ']':
      case ')':
      case 0x8f:
        push(data_.add_list({}));
        return;
      case 'l':
      case 't':
      case 0x91:
        push(data_.add_list(pop_to_mark()));
        return;
      case 0x85:
        push_tuple(1);
        return;
      case 0x86:
        push_tuple(2);
        return;
      case 0x87:
        push_tuple(3);
        return;
      case 'a':
        append({pop()}, Kind::list);
        return;
      case 'e':
      case 0x90:
        append(pop_to_mark(), Kind::list);
        return;
      case '}':
        push(data_.add_dict({}));
        return;
      case 'd':
        push_dict(pop_to_mark());
        return;
      case 's': {
        const PlainValue value = pop();
        const PlainValue key = pop();
        append({key, value}, Kind::dict);
        return;
      }
      case 'u':
        append(pop_to_mark(), Kind::dict);
        return;

      case 'g':
        get(memo_key(line()));
        return;
      case 'h':
        get(unsigned_le(1));
        return;
      case 'j':
        get(unsigned_le(4));
        return;
      case 'p':
        put(memo_key(line()));
        return;
      case 'q':
        put(unsigned_le(1));
        return;
      case 'r':
        put(unsigned_le(4));
        return;
      case 0x94:
        put(memo_.size());
        return;

      case 'c':
        refuse("GLOBAL");
      case 0x93:
        refuse("STACK_GLOBAL");
      case 'R':
        refuse("REDUCE");
      case 'b':
        refuse("BUILD");
      case 'i':
        refuse("INST");
      case 'o':
        refuse("OBJ");
      case 0x81:
        refuse("NEWOBJ");
      case 0x92:
        refuse("NEWOBJ_EX");
      case 'P':
        refuse("PERSID");
      case 'Q':
        refuse("BINPERSID");
      case 0x82:
        refuse("EXT1");
      case 0x83:
        refuse("EXT2");
      case 0x84:
        refuse("EXT4");
      case 0x97:
        refuse("NEXT_BUFFER");
      case 0x98:
        refuse("READONLY_BUFFER");
      default:
        fail(fmt::format("0x{:02x} is no opcode", opcode), "is it a pickle or a JSON file at all?");
    }
  }

  std::string_view bytes_;
  std::string file_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  bool stopped_ = false;
  PlainData data_;
  std::vector<PlainValue> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PlainValue> memo_;
};

}  // namespace

PlainData read_pickle(std::string_view bytes, const std::string& file) { return PickleReader(bytes, file).read(); }

}  // namespace headroom
