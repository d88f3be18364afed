#include "estimator/allocate/json_reader.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

/// Builds the tree from the parser's events, with a stack of its own.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const std::string& file) : file_(file) {}
  PlainData take() { return std::move(data_); }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(PlainData::make_boolean(value)); }
  bool number_integer(number_integer_t value) override { return add(PlainData::make_integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return add(PlainData::make_real(static_cast<double>(value)));
    return add(PlainData::make_integer(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(PlainData::make_real(value)); }
  bool string(string_t& value) override { return add(text(value)); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& value) override { return add(text(value)); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override {
    const std::vector<PlainValue> items = close();
    return add(data_.add_dict(items));
  }
  bool end_array() override {
    const std::vector<PlainValue> items = close();
    return add(data_.add_list(items));
  }
  bool parse_error(std::size_t position, const std::string& last, const nlohmann::json::exception&) override {
    throw bad_input("the JSON cannot be read: unexpected " + printable(last.empty() ? "end" : last, 40),
                    fmt::format("{}, byte {}", printable(file_), position), "the file is cut off or damaged");
  }

 private:
  bool add(PlainValue value) {
    if (starts_.empty())
      data_.root = value;
    else
      open_.push_back(value);
    return true;
  }
  bool open() {
    starts_.push_back(open_.size());
    return true;
  }
  std::vector<PlainValue> close() {
    const auto first = open_.begin() + static_cast<std::ptrdiff_t>(starts_.back());
    std::vector<PlainValue> items(first, open_.end());
    open_.erase(first, open_.end());
    starts_.pop_back();
    return items;
  }
  /// Keys and actions repeat a million times: each text is kept once.
  PlainValue text(const std::string& value) {
    const auto [known, is_new] = texts_.try_emplace(value);
    if (is_new) known->second = data_.add_text(value);
    return known->second;
  }

  std::string file_;
  PlainData data_;
  std::vector<PlainValue> open_;     // items of all containers that are still open
  std::vector<std::size_t> starts_;  // where each of them begins
  std::unordered_map<std::string, PlainValue> texts_;
};

}  // namespace

PlainData read_json(std::string_view bytes, const std::string& file) {
  Builder builder(file);
  nlohmann::json::sax_parse(bytes, &builder);
  return builder.take();
}

}  // namespace headroom
