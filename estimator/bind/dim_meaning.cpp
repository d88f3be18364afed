#include "estimator/bind/dim_meaning.h"

#include <algorithm>
#include <array>
#include <string>

namespace headroom {
namespace {

std::string lowered(std::string_view name) {
  std::string s(name);
  std::transform(s.begin(), s.end(), s.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
  return s;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <std::size_t N>
bool any_of(const std::array<std::string_view, N>& words, std::string_view name) {
  return std::find(words.begin(), words.end(), name) != words.end();
}
template <std::size_t N>
bool any_in(const std::array<std::string_view, N>& words, std::string_view name) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return contains(name, w); });
}

constexpr std::array<std::string_view, 4> batch_words = {"b", "bs", "bsz", "nbatch"};
constexpr std::array<std::string_view, 5> sequence_words = {"t", "l", "s", "time", "tokens"};
constexpr std::array<std::string_view, 7> sequence_parts = {"seq",   "length", "len",     "token",
                                                            "time_", "_time",  "timestep"};
constexpr std::array<std::string_view, 3> past_parts = {"past", "cache", "prev"};
constexpr std::array<std::string_view, 3> spatial_words = {"h", "w", "d"};
constexpr std::array<std::string_view, 5> spatial_parts = {"height", "width", "img_h", "img_w", "depth"};
constexpr std::array<std::string_view, 7> other_parts = {"channel", "head",  "hidden", "feature",
                                                         "class",   "embed", "vocab"};
constexpr std::array<std::string_view, 8> made_up_prefixes = {"s", "u", "d", "unk__", "dim", "dim_", "axis", "axis_"};

}  // namespace

bool is_made_up(std::string_view name) {
  const std::string s = lowered(name);
  if (s.empty() || s == "?" || s == "none" || s == "unk" || s == "dynamic" || s == "dyn" || s == "-1") return true;
  if (contains(s, "dynamic_axes") || s.starts_with("dynamicdimension") || s.starts_with("unknown")) return true;
  if (is_number(s)) return true;
  return std::any_of(made_up_prefixes.begin(), made_up_prefixes.end(), [&](std::string_view p) {
    return s.size() > p.size() && s.starts_with(p) && is_number(std::string_view(s).substr(p.size()));
  });
}

bool is_total_length(std::string_view name) {
  const std::string s = lowered(name);
  return contains(s, "total") && (contains(s, "len") || contains(s, "seq"));
}

DimMeaning meaning_by_name(std::string_view name, std::size_t axis) {
  if (is_made_up(name)) return DimMeaning::unknown;
  const std::string s = lowered(name);
  if (contains(s, "batch") || any_of(batch_words, s) || (s == "n" && axis == 0)) return DimMeaning::batch;
  if (is_total_length(name)) return DimMeaning::other;
  if (any_in(past_parts, s)) return DimMeaning::past;
  if (any_in(sequence_parts, s) || any_of(sequence_words, s)) return DimMeaning::sequence;
  if (any_in(spatial_parts, s) || any_of(spatial_words, s)) return DimMeaning::spatial;
  if (any_in(other_parts, s) || s == "c") return DimMeaning::other;
  return DimMeaning::unknown;
}

DimMeaning meaning_by_place(const DimPlace& p) {
  const bool ids = p.dtype == DType::i64 || p.dtype == DType::i32 || p.dtype == DType::b8;
  if (p.axis == 0) return DimMeaning::batch;
  if (p.axis == 1 && p.rank == 2 && ids) return DimMeaning::sequence;
  if (!p.made_up) return DimMeaning::unknown;
  const std::string input = lowered(p.input);
  if (any_in(past_parts, input)) return p.rank == 4 && p.axis >= 1 ? DimMeaning::past : DimMeaning::unknown;
  if (p.rank == 2 || p.rank == 3) return DimMeaning::sequence;
  if (p.rank == 4 && p.axis >= 2 && is_float(p.dtype)) return DimMeaning::spatial;
  return DimMeaning::unknown;
}

}  // namespace headroom
