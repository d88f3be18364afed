#include "estimator/allocate/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

constexpr std::int64_t most_divisions = 1LL << 40;  // more change nothing below an exabyte

/// Up to the next of `divisions` equal steps between two powers of two.
std::int64_t round_to_division(std::int64_t size, std::int64_t divisions) {
  const auto n = static_cast<std::uint64_t>(size);
  if (std::has_single_bit(n)) return size;
  const auto floor = static_cast<std::int64_t>(std::bit_floor(n));
  const std::int64_t step = floor >> (std::bit_width(static_cast<std::uint64_t>(divisions)) - 1);
  return step == 0 ? floor * 2 : Bytes(size).rounded_up(step).count();
}

/// A key of PYTORCH_ALLOC_CONF: which of PyTorch's two parsers owns it, and from which version on.
struct Key {
  std::string_view name;
  bool shared;  // c10/core/AllocatorConfig (every accelerator), else c10/cuda/CUDAAllocatorConfig
  TorchVersion since;
};
constexpr TorchVersion always{0, 0};
constexpr std::array<Key, 22> keys{{
    {"max_split_size_mb", true, always},
    {"max_non_split_rounding_mb", true, {2, 6}},
    {"garbage_collection_threshold", true, always},
    {"roundup_power2_divisions", true, always},
    {"expandable_segments", true, {2, 1}},
    {"large_segment_size_mb", true, {2, 11}},
    {"pinned_use_background_threads", true, {2, 6}},
    {"pinned_max_round_threshold_mb", true, {2, 13}},
    {"pinned_max_cached_size_mb", true, {2, 13}},
    {"backend", false, always},
    {"release_lock_on_cudamalloc", false, {2, 1}},
    {"release_lock_on_hipmalloc", false, {2, 1}},
    {"pinned_use_cuda_host_register", false, {2, 1}},
    {"pinned_use_hip_host_register", false, {2, 1}},
    {"pinned_num_register_threads", false, {2, 1}},
    {"pinned_reserve_segment_size_mb", false, {2, 9}},
    {"graph_capture_record_stream_reuse", false, {2, 10}},
    {"per_process_memory_fraction", false, {2, 10}},
    {"throw_on_cudamalloc_oom", false, {2, 12}},
    {"pinned_free_catch_all", false, {2, 13}},
    {"expandable_segments_reserve", false, {2, 14}},
    {"expandable_segments_reserve_by_class", false, {2, 14}},
}};

class Parser {
 public:
  Parser(std::string_view text, TorchVersion torch) : text_(text), strict_(torch < TorchVersion{2, 9}) {
    options_.torch = torch;
    tokenize();
  }

  AllocatorOptions parse() {
    if (strict_) {
      for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const Key* key = find_key(i);
        i = key->shared ? shared_value(key->name, i) : cuda_value(key->name, i);
        if (i + 1 < tokens_.size()) separator(++i, ",");
      }
      return options_;
    }
    // Two parsers read the whole text, CUDA's first; each skips what the other owns. Separators are not checked.
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const Key* key = find_key(i);
      i = key->shared ? skip(i) : cuda_value(key->name, i);
      ++i;
    }
    // The segment size is read before all, since others must not be smaller.
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i] == "large_segment_size_mb") i = large_segment_size(i);
    }
    options_.max_non_split_rounding = options_.large_segment_size;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const Key* key = find_key(i);
      i = key->shared && key->name != "large_segment_size_mb" ? shared_value(key->name, i) : skip(i);
      ++i;
    }
    return options_;
  }

 private:
  void tokenize() {
    std::string word;
    const auto flush = [&] {
      if (!word.empty()) tokens_.push_back(word);
      word.clear();
    };
    for (const char ch : text_) {
      if (ch == ',' || ch == ':' || ch == '[' || ch == ']') {
        flush();
        tokens_.emplace_back(1, ch);
      } else if (strict_ ? ch != ' ' : std::isspace(static_cast<unsigned char>(ch)) == 0) {
        word += ch;
      }
    }
    flush();
  }

  [[noreturn]] void refuse(std::string message, std::string hint = {}) const {
    throw usage_error(fmt::format("PyTorch {}.{} refuses these allocator options: {}", options_.torch.major,
                                  options_.torch.minor, message),
                      fmt::format("PYTORCH_ALLOC_CONF={}", text_), std::move(hint));
  }

  const Key* find_key(std::size_t i) const {
    const std::string& name = tokens_[i];
    const auto found = std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.name == name; });
    if (found != keys.end() && options_.torch >= found->since) return &*found;
    std::string hint;
    if (found != keys.end()) {
      hint = fmt::format("{} exists from torch {}.{} on", found->name, found->since.major, found->since.minor);
    } else {
      std::vector<std::string_view> names;
      for (const Key& key : keys) {
        if (options_.torch >= key.since) names.push_back(key.name);
      }
      const std::string_view near = nearest(name, std::span<const std::string_view>(names));
      hint = near.empty() ? "options are key:value, separated by commas" : fmt::format("did you mean {}?", near);
    }
    refuse(strict_ ? fmt::format("Unrecognized CachingAllocator option: {}", name)
                   : fmt::format("Unrecognized key '{}' in CUDA allocator config.", name),
           hint);
  }

  // ---- tokens

  const std::string& token(std::size_t i) const {
    if (i >= tokens_.size()) {
      refuse(strict_ ? "Error, expecting a value at the end of the text" : "Index out of bounds in ConfigTokenizer",
             "a value is missing at the end: options are key:value, separated by commas");
    }
    return tokens_[i];
  }
  /// Up to 2.8 a wrong separator is refused; later it is passed over, whatever it is.
  void separator(std::size_t i, std::string_view expected) const {
    if (strict_) {
      if (i >= tokens_.size() || tokens_[i] != expected) {
        refuse(fmt::format("Error parsing CachingAllocator settings, expected {}", expected));
      }
    } else if (expected == ":") {
      token(i);
    }
  }
  /// The last token of the value that follows the key at `i`.
  std::size_t skip(std::size_t i) const {
    separator(++i, ":");
    if (token(++i) != "[") return i;
    while (++i < tokens_.size() && tokens_[i] != "]") {
    }
    if (i >= tokens_.size()) {
      refuse("Expected closing bracket ']' in ConfigTokenizer but reached end of config", "close the list with ]");
    }
    return i;
  }

  /// As std::stoull reads: leading digits count, the rest is passed over, a minus wraps around.
  std::uint64_t unsigned_at(std::size_t i) const {
    const std::string& word = token(i);
    char* end = nullptr;
    errno = 0;
    const std::uint64_t value = std::strtoull(word.c_str(), &end, 10);
    if (end == word.c_str() || errno == ERANGE) {
      refuse(strict_ ? "stoi" : "stoull", fmt::format("'{}' is not a number", word));
    }
    return value;
  }
  double real_at(std::size_t i) const {
    const std::string& word = token(i);
    char* end = nullptr;
    errno = 0;
    const double value = std::strtod(word.c_str(), &end);
    if (end == word.c_str() || errno == ERANGE) refuse("stod", fmt::format("'{}' is not a number", word));
    return value;
  }
  bool bool_at(std::size_t i, std::string_view key) const {
    const std::string& word = token(i);
    if (word == "True") return true;
    if (word == "False") return false;
    refuse(strict_ ? fmt::format("Expected a single True/False argument for {}", key)
                   : fmt::format("Expected 'True' or 'False' at index {} in ConfigTokenizer but got '{}'", i, word),
           "write True or False with a capital letter");
  }
  static std::int64_t megabytes(std::uint64_t mb, std::int64_t most) {
    return mb >= static_cast<std::uint64_t>(most / MiB) ? most : static_cast<std::int64_t>(mb) * MiB;
  }

  // ---- values; each returns the index of its last token

  std::size_t large_segment_size(std::size_t i) {
    separator(++i, ":");
    const std::uint64_t mb = unsigned_at(++i);
    if (mb <= static_cast<std::uint64_t>(min_large_alloc / MiB)) {
      refuse(fmt::format("CachingAllocator option large_segment_size_mb must be > {} MB", min_large_alloc / MiB));
    }
    options_.large_segment_size = megabytes(mb, one_exabyte);
    return i;
  }

  std::size_t at_least_a_segment(std::string_view key, std::size_t i, std::int64_t& bytes) {
    const std::uint64_t mb = unsigned_at(i);
    const std::int64_t least = options_.large_segment_size / MiB;
    if (mb < static_cast<std::uint64_t>(least)) {
      refuse(fmt::format("CachingAllocator option {} too small, must be >= {}", key, least));
    }
    bytes = megabytes(mb, AllocatorOptions::unlimited);
    return i;
  }

  std::size_t shared_value(std::string_view key, std::size_t i) {
    if (key == "roundup_power2_divisions") return divisions(i);
    separator(++i, ":");
    ++i;
    if (key == "max_split_size_mb") return at_least_a_segment(key, i, options_.max_split_size);
    if (key == "max_non_split_rounding_mb") return at_least_a_segment(key, i, options_.max_non_split_rounding);
    if (key == "garbage_collection_threshold") {
      const double value = real_at(i);
      if (!(value > 0 && value < 1)) refuse("garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
      options_.garbage_collection_threshold = value;
    } else if (key == "expandable_segments") {
      options_.expandable_segments = bool_at(i, key);
    } else if (key == "pinned_use_background_threads") {
      bool_at(i, key);
    } else {
      unsigned_at(i);  // pinned_max_round_threshold_mb, pinned_max_cached_size_mb: host memory
    }
    return i;
  }

  std::size_t cuda_value(std::string_view key, std::size_t i) {
    separator(++i, ":");
    ++i;
    if (key == "backend") {
      const std::string& name = token(i);
      if (name != "native" && name != "cudaMallocAsync") {
        refuse("Unknown allocator backend, options are native and cudaMallocAsync");
      }
      options_.backend = name == "native" ? AllocatorBackend::native : AllocatorBackend::cuda_malloc_async;
    } else if (key == "per_process_memory_fraction") {
      const double value = real_at(i);
      if (!(value >= 0 && value <= 1)) refuse("per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
      options_.per_process_memory_fraction = value;
    } else if (key == "throw_on_cudamalloc_oom") {
      options_.throw_on_cudamalloc_oom = bool_at(i, key);
    } else if (key == "pinned_num_register_threads") {
      const std::uint64_t threads = unsigned_at(i);
      if (!std::has_single_bit(threads)) {
        refuse(fmt::format("Number of register threads has to be power of 2, got {}", threads));
      }
      if (threads > 128) {
        refuse(fmt::format("Number of register threads should be less than or equal to 128, got {}", threads));
      }
    } else if (key == "pinned_reserve_segment_size_mb") {
      if (unsigned_at(i) == 0) refuse("Pinned reserve segment size has to be greater than 0");
    } else if (key == "expandable_segments_reserve") {
      token(i);  // address space only; PyTorch warns about a value it cannot read and goes on
    } else if (key == "expandable_segments_reserve_by_class") {
      return skip(i - 2);
    } else {
      bool_at(i, key);  // locks, host memory, CUDA graphs' capture: no figure of ours depends on them
    }
    return i;
  }

  /// One number for all sizes, or [MB:number,…,>:number].
  std::size_t divisions(std::size_t i) {
    auto& table = options_.roundup_power2_divisions;
    table.fill(0);
    const auto number_at = [&](std::size_t at) {
      return static_cast<std::int64_t>(std::min(unsigned_at(at), static_cast<std::uint64_t>(most_divisions)));
    };
    separator(++i, ":");
    if (token(++i) != "[") {
      if (!std::has_single_bit(unsigned_at(i))) refuse("For roundups, the divisions has to be power of 2 ");
      table.fill(number_at(i));
      return i;
    }
    bool first = true;
    std::size_t last_index = 0;
    while (token(++i) != "]") {
      const std::size_t boundary_at = i;
      separator(++i, ":");
      const std::uint64_t value = unsigned_at(++i);
      if (value != 0 && !std::has_single_bit(value)) {
        refuse("For roundups, the divisions has to be power of 2 or 0 to disable roundup ");
      }
      if (tokens_[boundary_at] == ">") {
        std::fill(table.begin() + static_cast<std::ptrdiff_t>(last_index) + (strict_ ? 0 : 1), table.end(),
                  number_at(i));
      } else {
        const std::uint64_t boundary = unsigned_at(boundary_at);
        if (!std::has_single_bit(boundary)) refuse("For roundups, the intervals have to be power of 2 ");
        last_index = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(boundary)) - 1, table.size() - 1);
        // The first boundary also stands for everything below it.
        if (first) std::fill_n(table.begin(), last_index, number_at(i));
        first = false;
        table[last_index] = number_at(i);
      }
      if (token(i + 1) != "]") separator(++i, ",");
    }
    return i;
  }

  std::string_view text_;
  bool strict_;
  std::vector<std::string> tokens_;
  AllocatorOptions options_;
};

}  // namespace

std::int64_t AllocatorOptions::round_size(std::int64_t bytes) const {
  if (bytes < min_block_size) return min_block_size;
  const auto log2 = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes))) - 1;
  const std::int64_t divisions = roundup_power2_divisions[static_cast<std::size_t>(std::clamp(log2 - 20, 0, 15))];
  if (divisions > 1 && bytes > min_block_size * divisions) return round_to_division(bytes, divisions);
  return Bytes(bytes).rounded_up(min_block_size).count();
}

std::int64_t AllocatorOptions::segment_size(std::int64_t size) const {
  if (size <= small_size) return small_buffer;
  if (size < min_large_alloc) return large_segment_size;
  return Bytes(size).rounded_up(round_large).count();
}

TorchVersion parse_torch_version(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '.');
  const auto major = parts.size() < 2 ? std::nullopt : parse_int(parts[0]);
  const auto minor =
      parts.size() < 2 ? std::nullopt : parse_int(parts[1].substr(0, parts[1].find_first_not_of("0123456789")));
  if (!major || !minor || *major < 0 || *major > 99 || *minor < 0 || *minor > 99) {
    throw usage_error(fmt::format("'{}' is no version of torch", text), "--torch", "as in 2.11");
  }
  return {static_cast<int>(*major), static_cast<int>(*minor)};
}

AllocatorOptions parse_allocator_options(std::string_view text, TorchVersion torch) {
  return Parser(text, torch).parse();
}

}  // namespace headroom
