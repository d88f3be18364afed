#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "estimator/allocate/history_readers.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

constexpr std::array actions{
    Action::alloc,        Action::free_requested, Action::free_completed, Action::segment_alloc,
    Action::segment_free, Action::segment_map,    Action::segment_unmap,  Action::oom};

class SnapshotReader {
 public:
  SnapshotReader(const PlainData& data, const std::string& file) : data_(data), file_(file) {
    for (const Action action : actions) actions_.emplace(name_of(action), action);
  }

  std::vector<History> read() {
    const PlainValue settings = data_.get(data_.root, "allocator_settings");
    std::string conf;
    for (const std::string_view key : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
      if (conf.empty()) conf = data_.get(settings, key).as_text();
    }
    std::map<std::int64_t, History> by_device;
    const std::vector<PlainValue>& traces = data_.items(data_.get(data_.root, "device_traces"));
    for (std::size_t device = 0; device < traces.size(); ++device) {
      if (!data_.items(traces[device]).empty())
        read_trace(by_device[static_cast<std::int64_t>(device)], traces[device]);
    }
    std::map<std::int64_t, std::vector<PlainValue>> segments;
    for (const PlainValue& segment : data_.items(data_.get(data_.root, "segments"))) {
      segments[data_.get(segment, "device").as_integer()].push_back(segment);
    }
    for (const auto& [device, records] : segments) read_segments(by_device[device], records);
    std::vector<History> histories;
    for (auto& [device, history] : by_device) {
      history.file = file_;
      history.device = static_cast<int>(device);
      history.alloc_conf = conf;
      history.segments_have_blocks = true;
      number_streams(history, entry_streams_[&history], segment_streams_[&history]);
      if (!entries_name_pools_) take_pools_from_segments(history);
      histories.push_back(std::move(history));
    }
    if (histories.empty()) {
      throw bad_input("the snapshot holds no segments and no events", printable(file_),
                      "record with torch.cuda.memory._record_memory_history() before the first allocation");
    }
    return histories;
  }

 private:
  // A file may mention one list many times; what is made of it must stay within what an honest file of its size gives.
  static constexpr std::size_t most_items = 100'000'000;
  void count_item() {
    if (++items_ > most_items)
      throw bad_input("the snapshot has more than 100 million events and blocks", printable(file_));
  }

  std::int64_t number_of(const PlainValue& dict, std::string_view key, std::int64_t most = most_recorded_bytes) {
    const std::int64_t size = data_.get(dict, key).as_integer(-1);
    if (size < 0 || size > most) {
      throw bad_input(fmt::format("an event or block of the snapshot has no usable `{}`", key), printable(file_));
    }
    return size;
  }

  PoolId pool_of(const PlainValue& id) {
    const std::vector<PlainValue>& pair = data_.items(id);
    if (pair.size() != 2) return 0;
    const std::pair key{pair[0].as_integer(), pair[1].as_integer()};
    if (key == std::pair<std::int64_t, std::int64_t>{0, 0}) return 0;
    return pools_.try_emplace(key, static_cast<PoolId>(pools_.size() + 1)).first->second;
  }

  void read_trace(History& history, const PlainValue& trace) {
    std::vector<std::int64_t>& streams = entry_streams_[&history];
    for (const PlainValue& entry : data_.items(trace)) {
      count_item();
      const auto action = actions_.find(data_.get(entry, "action").as_text());
      if (action == actions_.end())
        continue;  // "snapshot", "annotate", "workspace_snapshot": nothing happens to memory
      TraceEntry event;
      event.action = action->second;
      event.size = number_of(entry, "size");
      event.address = static_cast<Address>(
          number_of(entry, event.action == Action::oom ? "device_free" : "addr", highest_recorded_address));
      event.context = stack_of(history, data_.get(entry, "frames"));
      const PlainValue pool = data_.get(entry, "pool_id");
      entries_name_pools_ = entries_name_pools_ || pool.is_list();
      event.pool = pool_of(pool);
      streams.push_back(data_.get(entry, "stream").as_integer());
      history.entries.push_back(event);
    }
  }

  void read_segments(History& history, const std::vector<PlainValue>& records) {
    std::vector<std::pair<SegmentRecord, std::int64_t>> segments;
    for (const PlainValue& record : records) {
      count_item();
      SegmentRecord segment;
      segment.address = static_cast<Address>(number_of(record, "address", highest_recorded_address));
      segment.size = number_of(record, "total_size");
      segment.pool = pool_of(data_.get(record, "segment_pool_id"));
      segment.small_pool = data_.get(record, "segment_type").as_text() == "small";
      segment.expandable = data_.get(record, "is_expandable").as_integer() != 0;
      std::int64_t total = 0;
      for (const PlainValue& item : data_.items(data_.get(record, "blocks"))) {
        count_item();
        BlockRecord block;
        block.size = number_of(item, "size");
        block.requested =
            std::clamp<std::int64_t>(data_.get(item, "requested_size").as_integer(block.size), 0, most_recorded_bytes);
        const std::string_view state = data_.get(item, "state").as_text();
        block.state = state == "active_allocated" ? BlockState::active_allocated
                      : state == "inactive"       ? BlockState::inactive
                                                  : BlockState::active_pending_free;
        block.context = stack_of(history, data_.get(item, "frames"));
        total += block.size;
        if (block.size == 0 || total > segment.size) break;
        segment.blocks.push_back(block);
      }
      if (total != segment.size) {
        throw bad_input(fmt::format("blocks of {} bytes in a segment of {}", total, segment.size), printable(file_),
                        "the snapshot is damaged");
      }
      segments.emplace_back(std::move(segment), data_.get(record, "stream").as_integer());
    }
    std::sort(segments.begin(), segments.end(),
              [](const auto& a, const auto& b) { return a.first.address < b.first.address; });
    for (auto& [segment, stream] : segments) {
      history.segments.push_back(std::move(segment));
      segment_streams_[&history].push_back(stream);
    }
  }

  /// A list of frames that the file shares is read once.
  std::int32_t stack_of(History& history, const PlainValue& frames) {
    if (!frames.is_list() || data_.items(frames).empty()) return -1;
    const auto [known, is_new] =
        stacks_.try_emplace({&history, frames.container}, static_cast<std::int32_t>(history.stacks.size()));
    if (is_new) {
      std::vector<std::uint32_t> stack;
      for (const PlainValue& frame : data_.items(frames)) {
        count_item();
        if (frame.is_dict()) stack.push_back(frame_of(history, frame));
      }
      history.stacks.push_back(std::move(stack));
    }
    return known->second;
  }
  std::uint32_t frame_of(History& history, const PlainValue& frame) {
    const auto [known, is_new] =
        frames_.try_emplace({&history, frame.container}, static_cast<std::uint32_t>(history.frames.size()));
    if (is_new) {
      history.frames.push_back({std::string(data_.get(frame, "filename").as_text()),
                                data_.get(frame, "line").as_integer(),
                                std::string(data_.get(frame, "name").as_text())});
    }
    return known->second;
  }

  /// Before 2.12 events do not say in which pool they happened. The segments that are there at the end do, back to the
  /// event that made them.
  static void take_pools_from_segments(History& history) {
    std::map<Address, const SegmentRecord*> ranges;
    for (const SegmentRecord& segment : history.segments) {
      if (segment.pool != 0) ranges.emplace(segment.address, &segment);
    }
    for (auto entry = history.entries.rbegin(); entry != history.entries.rend() && !ranges.empty(); ++entry) {
      auto range = ranges.upper_bound(entry->address);
      if (entry->action == Action::oom || range == ranges.begin()) continue;
      --range;
      const SegmentRecord& segment = *range->second;
      if (entry->address >= segment.address + static_cast<Address>(segment.size)) continue;
      entry->pool = segment.pool;
      if (entry->action == Action::segment_alloc) ranges.erase(range);
    }
  }

  const PlainData& data_;
  std::string file_;
  std::size_t items_ = 0;
  bool entries_name_pools_ = false;
  std::unordered_map<std::string_view, Action> actions_;
  std::map<std::pair<std::int64_t, std::int64_t>, PoolId> pools_;
  std::map<const History*, std::vector<std::int64_t>> entry_streams_, segment_streams_;
  std::map<std::pair<const History*, std::uint32_t>, std::int32_t> stacks_;
  std::map<std::pair<const History*, std::uint32_t>, std::uint32_t> frames_;
};

}  // namespace

std::vector<History> histories_of_snapshot(const PlainData& data, const std::string& file) {
  return SnapshotReader(data, file).read();
}

}  // namespace headroom
