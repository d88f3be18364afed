// PlainData: Python's or JSON's dicts, lists, numbers and texts, as read from a file.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

/// One value. Lists and dicts are held by number, so a value that a file mentions twice exists once. Valid as long as
/// its PlainData.
struct PlainValue {
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, list, dict };

  Kind kind = Kind::none;
  std::uint32_t length = 0;  // of a text
  union {
    std::int64_t integer = 0;
    double real;
    const char* text;
    std::uint32_t container;
  };

  bool is_list() const { return kind == Kind::list; }
  bool is_dict() const { return kind == Kind::dict; }
  std::string_view as_text() const { return kind == Kind::text ? std::string_view(text, length) : std::string_view(); }
  std::int64_t as_integer(std::int64_t otherwise = 0) const {
    return kind == Kind::integer || kind == Kind::boolean ? integer : otherwise;
  }
};

/// A tree (or, when a value is shared, a graph that may even contain itself: walk it to a known depth only).
class PlainData {
 public:
  PlainValue root;

  /// Items of a list (or tuple); empty for anything else.
  const std::vector<PlainValue>& items(const PlainValue& list) const;
  /// The value under `key` of a dict, the last one when the key comes twice; a none for anything else.
  PlainValue get(const PlainValue& dict, std::string_view key) const;

  PlainValue add_text(std::string_view text);  ///< copies
  PlainValue add_list(std::vector<PlainValue> items);
  /// `entries`: key, value, key, value, …
  PlainValue add_dict(std::vector<PlainValue> entries);
  std::vector<PlainValue>& contents(const PlainValue& container) { return containers_[container.container]; }

  static PlainValue make_integer(std::int64_t n);
  static PlainValue make_boolean(bool b);
  static PlainValue make_real(double x);
  /// A view: `text` must outlive the data.
  static PlainValue make_text(std::string_view text);

 private:
  std::vector<std::vector<PlainValue>> containers_;
  std::deque<std::string> texts_;
};

}  // namespace headroom
