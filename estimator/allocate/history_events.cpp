#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "estimator/allocate/history_readers.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

// Recorded addresses may be relative to any base; room below is needed for a model that places new segments downwards.
constexpr Address base = Address{1} << 46;

class EventsReader {
 public:
  EventsReader(const PlainData& data, const PlainValue& run, const std::string& file)
      : data_(data), run_(run), file_(printable(file)) {}

  History read() {
    History history;
    history.file = file_;
    history.alloc_conf = data_.get(run_, "conf").as_text();
    history.torch_version = data_.get(run_, "torch").as_text();
    if (const double fraction = number(data_.get(run_, "fraction")); fraction > 0 && fraction < 1) {
      history.memory_fraction = fraction;
    }
    if (const std::int64_t total = data_.get(run_, "total_memory").as_integer();
        total > 0 && total <= most_recorded_bytes) {
      history.device_total = Bytes(total);
    }
    read_events(history);
    read_segments(history);
    number_streams(history, entry_streams_, segment_streams_);
    read_peaks(history);
    return history;
  }

 private:
  static double number(const PlainValue& value) {
    return value.kind == PlainValue::Kind::real ? value.real : static_cast<double>(value.as_integer());
  }
  std::int64_t number_at(const std::vector<PlainValue>& items, std::size_t i, std::int64_t most,
                         std::string_view what) const {
    const std::int64_t n = i < items.size() ? items[i].as_integer(-1) : -1;
    if (n < 0 || n > most) {
      throw bad_input(fmt::format("a {} of the history is no size or address", what), file_,
                      "an event is [action, bytes, address, stream]");
    }
    return n;
  }

  void read_events(History& history) {
    static const std::unordered_map<std::string_view, Action> actions{
        {"alloc", Action::alloc},
        {"free_requested", Action::free_requested},
        {"free_completed", Action::free_completed},
        {"segment_alloc", Action::segment_alloc},
        {"segment_free", Action::segment_free},
        {"segment_map", Action::segment_map},
        {"segment_unmap", Action::segment_unmap},
        {"oom", Action::oom},
        {"A", Action::alloc},
        {"S", Action::segment_alloc},
        {"F", Action::free_requested},  // and completed
    };
    const PlainValue events = data_.get(run_, "events");
    if (!events.is_list()) {
      throw bad_input("the history holds no events", file_,
                      data_.get(run_, "stats").is_dict() ? "it holds statistics only, which cannot be replayed" : "");
    }
    history.entries.reserve(data_.items(events).size());
    for (const PlainValue& event : data_.items(events)) {
      const std::vector<PlainValue>& items = data_.items(event);
      const std::string_view name = items.empty() ? std::string_view() : items[0].as_text();
      const auto action = actions.find(name);
      if (action == actions.end()) {
        throw bad_input(fmt::format("'{}' is no action of an allocator", printable(name, 40)), file_,
                        "an event is [action, bytes, address, stream]");
      }
      TraceEntry entry;
      entry.action = action->second;
      entry.size = number_at(items, 1, most_recorded_bytes, "size");
      entry.address = static_cast<Address>(number_at(items, 2, highest_recorded_address, "address"));
      if (entry.action != Action::oom) entry.address += base;
      const std::int64_t stream = items.size() > 3 ? items[3].as_integer() : 0;
      if (items.size() > 4) entry.context = context_of(items[4].as_text(), history);
      history.entries.push_back(entry);
      entry_streams_.push_back(stream);
      if (name == "F") {
        entry.action = Action::free_completed;
        history.entries.push_back(entry);
        entry_streams_.push_back(stream);
      }
    }
  }

  /// Number of the stack "file.py:line:function < file.py:line:function", innermost frame first; -1 for none. Stacks
  /// repeat: each text is read once.
  std::int32_t context_of(std::string_view text, History& history) {
    if (text.empty()) return -1;
    constexpr std::string_view separator = " < ";
    const auto [known, is_new] = contexts_.try_emplace(text, static_cast<std::int32_t>(history.stacks.size()));
    if (!is_new) return known->second;
    std::vector<std::uint32_t> stack;
    for (std::size_t at = 0, end = 0; end != std::string_view::npos; at = end + separator.size()) {
      end = text.find(separator, at);
      std::vector<std::string_view> parts = split(text.substr(at, end == std::string_view::npos ? end : end - at), ':');
      parts.resize(3);
      stack.push_back(static_cast<std::uint32_t>(history.frames.size()));
      history.frames.push_back({std::string(parts[0]), parse_int(parts[1]).value_or(0), std::string(parts[2])});
    }
    history.stacks.push_back(std::move(stack));
    return known->second;
  }

  /// [address, bytes, stream, "small" or "large", expandable, [[bytes, requested, state], …]], or the first two and the
  /// kind.
  void read_segments(History& history) {
    history.segments_have_blocks = true;
    for (const PlainValue& item : data_.items(data_.get(run_, "segments"))) {
      const std::vector<PlainValue>& fields = data_.items(item);
      SegmentRecord segment;
      segment.address =
          static_cast<Address>(number_at(fields, 0, highest_recorded_address, "segment's address")) + base;
      segment.size = number_at(fields, 1, most_recorded_bytes, "segment's size");
      segment.small_pool =
          std::any_of(fields.begin(), fields.end(), [](const auto& f) { return f.as_text() == "small"; });
      const std::int64_t stream = fields.size() > 3 ? fields[2].as_integer() : 0;
      if (fields.size() < 6) {
        history.segments_have_blocks = false;
      } else {
        segment.expandable = fields[4].as_integer() != 0;
        read_blocks(segment, fields[5]);
      }
      history.segments.push_back(std::move(segment));
      segment_streams_.push_back(stream);
    }
  }

  void read_blocks(SegmentRecord& segment, const PlainValue& blocks) const {
    std::int64_t total = 0;
    for (const PlainValue& item : data_.items(blocks)) {
      const std::vector<PlainValue>& fields = data_.items(item);
      BlockRecord block;
      block.size = number_at(fields, 0, most_recorded_bytes, "block's size");
      block.requested = number_at(fields, 1, most_recorded_bytes, "block's request");
      const std::string_view state = fields.size() > 2 ? fields[2].as_text() : std::string_view();
      block.state = state == "active_allocated" ? BlockState::active_allocated
                    : state == "inactive"       ? BlockState::inactive
                                                : BlockState::active_pending_free;
      total += block.size;
      if (block.size == 0 || total > segment.size) break;
      segment.blocks.push_back(block);
    }
    if (total != segment.size) {
      throw bad_input(fmt::format("blocks of {} bytes in a segment of {}", total, segment.size), file_,
                      "the history is damaged");
    }
  }

  void read_peaks(History& history) const {
    const PlainValue stats = data_.get(run_, "stats");
    const auto peak = [&](const char* key) -> std::optional<std::int64_t> {
      const PlainValue value = data_.get(stats, key);
      if (value.kind != PlainValue::Kind::integer) return std::nullopt;
      return value.integer;
    };
    history.peaks = {.allocated = peak("allocated_bytes.all.peak"),
                     .reserved = peak("reserved_bytes.all.peak"),
                     .active = peak("active_bytes.all.peak"),
                     .requested = peak("requested_bytes.all.peak")};
    if (history.peaks.requested == 0) history.peaks.requested.reset();  // cudaMallocAsync does not count them
  }

  const PlainData& data_;
  PlainValue run_;
  std::string file_;
  std::vector<std::int64_t> entry_streams_, segment_streams_;
  std::unordered_map<std::string_view, std::int32_t> contexts_;
};

}  // namespace

History history_of_events(const PlainData& data, const PlainValue& run, const std::string& file) {
  return EventsReader(data, run, file).read();
}

}  // namespace headroom
