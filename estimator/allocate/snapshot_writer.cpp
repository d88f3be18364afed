#include "estimator/allocate/snapshot_writer.h"

#include <bit>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace headroom {
namespace {

/// Protocol 2 with the opcodes that the viewer's JavaScript reader knows. Texts and shared lists are written once and
/// referred to afterwards.
class PickleWriter {
 public:
  PickleWriter() { bytes_ = "\x80\x02"; }
  std::string finish() {
    bytes_ += '.';
    return std::move(bytes_);
  }

  void integer(std::int64_t n) {
    if (n >= 0 && n <= 0xff) {
      bytes_ += 'K';
      little_endian(static_cast<std::uint64_t>(n), 1);
    } else if (n >= INT32_MIN && n <= INT32_MAX) {
      bytes_ += 'J';
      little_endian(static_cast<std::uint64_t>(n), 4);
    } else {
      bytes_ += "\x8a\x08";
      little_endian(static_cast<std::uint64_t>(n), 8);
    }
  }
  void boolean(bool b) { bytes_ += b ? '\x88' : '\x89'; }
  void real(double x) {
    bytes_ += 'G';
    const auto bits = std::bit_cast<std::uint64_t>(x);
    for (int shift = 56; shift >= 0; shift -= 8) bytes_ += static_cast<char>(bits >> shift & 0xff);
  }
  void text(std::string_view text) {
    const auto known = texts_.find(std::string(text));
    if (known != texts_.end()) {
      recall(known->second);
      return;
    }
    bytes_ += 'X';
    little_endian(text.size(), 4);
    bytes_ += text;
    texts_.emplace(text, remember());
  }

  void begin_list() { bytes_ += ']'; }
  /// Items come in batches: the viewer cannot take a hundred thousand at once.
  template <class Items, class Write>
  void list(const Items& items, Write write) {
    constexpr std::size_t batch = 1000;
    begin_list();
    std::size_t n = 0;
    for (const auto& item : items) {
      if (n % batch == 0) bytes_ += n == 0 ? "(" : "e(";
      write(item);
      ++n;
    }
    if (n > 0) bytes_ += 'e';
  }
  void append() { bytes_ += 'a'; }
  void begin_dict() { bytes_ += "}("; }
  void end_dict() { bytes_ += 'u'; }
  void pair(std::int64_t first, std::int64_t second) {
    integer(first);
    integer(second);
    bytes_ += '\x86';
  }

  void entry(std::string_view key, std::int64_t value) {
    text(key);
    integer(value);
  }
  void entry(std::string_view key, std::string_view value) {
    text(key);
    text(value);
  }
  void flag(std::string_view key, bool value) {
    text(key);
    boolean(value);
  }

  /// Stores the value just written; its number is for `recall`.
  std::uint32_t remember() {
    bytes_ += 'r';
    little_endian(memo_, 4);
    return memo_++;
  }
  void recall(std::uint32_t number) {
    bytes_ += 'j';
    little_endian(number, 4);
  }

 private:
  void little_endian(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> 8 * i & 0xff);
  }

  std::string bytes_;
  std::uint32_t memo_ = 0;
  std::unordered_map<std::string, std::uint32_t> texts_;
};

class SnapshotWriter {
 public:
  SnapshotWriter(const History& history, const AllocatorOptions& options, const std::vector<std::string>& categories)
      : history_(history), options_(options), categories_(categories), stack_memo_(history.stacks.size(), absent) {}

  std::string write() {
    out_.begin_dict();
    out_.text("segments");
    out_.list(history_.segments, [&](const SegmentRecord& segment) { write_segment(segment); });
    out_.text("device_traces");
    out_.begin_list();
    for (int device = 0; device < history_.device; ++device) {
      out_.begin_list();
      out_.append();
    }
    std::int64_t time = 0;
    out_.list(history_.entries, [&](const TraceEntry& entry) { write_entry(entry, time++); });
    out_.append();
    out_.text("allocator_settings");
    write_settings();
    out_.text("external_annotations");
    out_.begin_list();
    out_.end_dict();
    return out_.finish();
  }

 private:
  static constexpr std::uint32_t absent = UINT32_MAX;

  void write_segment(const SegmentRecord& segment) {
    std::int64_t allocated = 0;
    std::int64_t active = 0;
    std::int64_t requested = 0;
    for (const BlockRecord& block : segment.blocks) {
      if (block.state == BlockState::inactive) continue;
      active += block.size;
      requested += block.requested;
      if (block.state == BlockState::active_allocated) allocated += block.size;
    }
    out_.begin_dict();
    out_.entry("device", history_.device);
    out_.entry("address", static_cast<std::int64_t>(segment.address));
    out_.entry("total_size", segment.size);
    out_.entry("allocated_size", allocated);
    out_.entry("active_size", active);
    out_.entry("requested_size", requested);
    out_.entry("stream", segment.stream);
    out_.entry("segment_type", std::string_view(segment.small_pool ? "small" : "large"));
    out_.text("segment_pool_id");
    out_.pair(0, segment.pool);
    out_.flag("is_expandable", segment.expandable);
    out_.text("frames");
    out_.begin_list();
    out_.text("blocks");
    Address at = segment.address;
    out_.list(segment.blocks, [&](const BlockRecord& block) {
      out_.begin_dict();
      out_.entry("address", static_cast<std::int64_t>(at));
      out_.entry("size", block.size);
      out_.entry("requested_size", block.requested);
      out_.entry("state", name_of(block.state));
      write_stack(block.context);
      out_.end_dict();
      at += static_cast<Address>(block.size);
    });
    out_.end_dict();
  }

  void write_entry(const TraceEntry& entry, std::int64_t time) {
    out_.begin_dict();
    out_.entry("action", name_of(entry.action));
    out_.entry(entry.action == Action::oom ? "device_free" : "addr", static_cast<std::int64_t>(entry.address));
    out_.entry("size", entry.size);
    out_.entry("stream", entry.stream);
    out_.entry("time_us", time);
    write_stack(entry.context);
    // The viewer fails on categories unless one of them is "unknown": the events of segments are.
    if (!categories_.empty()) out_.entry("category", category_of(entry));
    out_.end_dict();
  }

  std::string_view category_of(const TraceEntry& entry) const {
    const bool of_block = entry.action == Action::alloc || entry.action == Action::free_requested ||
                          entry.action == Action::free_completed;
    const auto context = static_cast<std::size_t>(entry.context);
    if (!of_block || entry.context < 0 || context >= categories_.size() || categories_[context].empty())
      return "unknown";
    return categories_[context];
  }

  void write_stack(std::int32_t context) {
    out_.text("frames");
    if (context < 0 || static_cast<std::size_t>(context) >= history_.stacks.size()) {
      out_.begin_list();
      return;
    }
    std::uint32_t& memo = stack_memo_[static_cast<std::size_t>(context)];
    if (memo != absent) {
      out_.recall(memo);
      return;
    }
    out_.list(history_.stacks[static_cast<std::size_t>(context)], [&](std::uint32_t index) {
      const Frame& frame = history_.frames[index];
      out_.begin_dict();
      out_.entry("filename", std::string_view(frame.filename));
      out_.entry("line", frame.line);
      out_.entry("name", std::string_view(frame.name));
      out_.end_dict();
    });
    memo = out_.remember();
  }

  void write_settings() {
    out_.begin_dict();
    out_.entry("PYTORCH_CUDA_ALLOC_CONF", std::string_view(history_.alloc_conf));
    out_.entry("max_split_size", options_.max_split_size == AllocatorOptions::unlimited ? -1 : options_.max_split_size);
    out_.text("garbage_collection_threshold");
    out_.real(options_.garbage_collection_threshold);
    out_.flag("expandable_segments", options_.expandable_segments);
    out_.text("roundup_power2_divisions");
    out_.begin_dict();
    for (std::size_t i = 0; i < options_.roundup_power2_divisions.size(); ++i) {
      out_.entry(std::to_string(1 << i), options_.roundup_power2_divisions[i]);
    }
    out_.end_dict();
    out_.end_dict();
  }

  const History& history_;
  const AllocatorOptions& options_;
  const std::vector<std::string>& categories_;
  std::vector<std::uint32_t> stack_memo_;
  PickleWriter out_;
};

}  // namespace

std::string snapshot_pickle(const History& history, const AllocatorOptions& options,
                            const std::vector<std::string>& categories) {
  return SnapshotWriter(history, options, categories).write();
}

}  // namespace headroom
