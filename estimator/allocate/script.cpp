#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "estimator/allocate/initial_state.h"
#include "estimator/allocate/replay.h"
#include "estimator/base/error.h"

namespace headroom {
namespace {

bool gives_back(Action action) { return action == Action::segment_free || action == Action::segment_unmap; }
bool takes(Action action) { return action == Action::segment_alloc || action == Action::segment_map; }

/// The garbage collector takes whole segments of the large pool only, never expandable ones.
bool can_be_collected(const TraceEntry& entry) {
  return entry.action == Action::segment_free && entry.size > 2 * MiB && entry.pool == 0;
}

/// Tells what the program did from what the allocator recorded. empty_cache() is no event: it is a run of freed
/// segments that no failing allocation and no garbage collection explains.
class ScriptMaker {
 public:
  ScriptMaker(const History& history, ReplayScript& script) : history_(history), script_(script) {}

  void make() {
    check_sums();
    if (history_.segments_have_blocks && !history_.segments.empty()) {
      InitialState initial = initial_state(history_, script_.options);
      script_.initial = std::move(initial.segments);
      contradictions_ += initial.contradictions;
    }
    find_limit();
    number_initial_blocks();
    completes_ = std::any_of(history_.entries.begin(), history_.entries.end(),
                             [](const TraceEntry& e) { return e.action == Action::free_completed; });
    reserved_ = initial_reserved_;
    for (std::size_t i = 0; i < history_.entries.size(); ++i) read(i);
    script_.blocks = blocks_;
    if (contradictions_ > 0) {
      script_.diagnostics.push_back({"history-inconsistent", Severity::warning, history_.file,
                                     fmt::format("{} events do not fit the state they lead to; the recording was "
                                                 "interrupted or is incomplete",
                                                 contradictions_)});
    }
  }

 private:
  using Kind = ReplayScript::Kind;

  /// Everything below adds up some of these.
  void check_sums() const {
    try {
      std::int64_t sum = 0;
      for (const TraceEntry& entry : history_.entries) sum = checked_add(sum, entry.size);
      for (const SegmentRecord& segment : history_.segments) sum = checked_add(sum, segment.size);
    } catch (const SizeOverflow&) {
      throw bad_input("the sizes of the history add up to more than 64 bits", history_.file, "the file is damaged");
    }
  }

  std::int64_t asked(std::int64_t bytes) const {
    return script_.options.segment_size(script_.options.round_size(std::max<std::int64_t>(1, bytes)));
  }

  /// Physical memory for a segment.
  std::int64_t mapped(std::int64_t segment) const {
    const AllocatorOptions& options = script_.options;
    if (!options.expandable_segments || segment < options.large_segment_size) return segment;
    return Bytes(segment).rounded_up(options.large_segment_size).count();
  }

  /// What the events say about the memory that was there.
  struct Observed {
    std::int64_t peak = 0;     ///< reserved
    std::int64_t granted = 0;  ///< reserved before, and what cudaMalloc would be asked for, where it was granted
    std::int64_t capacity = INT64_MAX;      ///< reserved and what the driver called free, where it was refused
    std::int64_t refused_from = INT64_MAX;  ///< reserved and what was asked for, where it was refused
    bool refused = false;
    bool by_driver = true;  ///< every refused request was more than what was free
  };
  Observed observe() const {
    Observed seen;
    std::int64_t reserved = initial_reserved_;
    std::int64_t before = reserved;
    for (const TraceEntry& entry : history_.entries) {
      if (entry.action == Action::alloc && reserved > before)
        seen.granted = std::max(seen.granted, before + asked(entry.size));
      if (takes(entry.action)) reserved += entry.size;
      if (gives_back(entry.action)) reserved -= entry.size;
      if (!takes(entry.action)) before = reserved;
      seen.peak = std::max(seen.peak, reserved);
      if (entry.action != Action::oom) continue;
      seen.refused = true;
      seen.refused_from = std::min(seen.refused_from, reserved + asked(entry.size));
      if (entry.address == 0) continue;  // not recorded
      const auto free = static_cast<std::int64_t>(entry.address);
      seen.capacity = std::min(seen.capacity, reserved + free);
      seen.by_driver = seen.by_driver && mapped(asked(entry.size)) > free;
    }
    return seen;
  }

  /// The card as the recording knew it, for when allocations were refused.
  void find_limit() {
    for (const SegmentRecord& segment : script_.initial) initial_reserved_ += segment.size;
    const Observed seen = observe();
    AllocatorOptions& options = script_.options;
    AllocatorDevice& device = script_.device;
    if (history_.memory_fraction) options.per_process_memory_fraction = *history_.memory_fraction;
    by_fraction_ = options.per_process_memory_fraction < 1 || (seen.refused && !seen.by_driver);
    limit_ = by_fraction_ ? std::max(seen.peak, std::min(seen.granted, seen.refused_from - 1))
             : seen.capacity >= seen.peak && seen.capacity != INT64_MAX ? seen.capacity
                                                                        : seen.peak;
    if (history_.device_total) {
      device.total = *history_.device_total;
      if (seen.capacity != INT64_MAX) {
        device.outside = Bytes(std::max<std::int64_t>(0, device.total.count() - std::max(seen.capacity, seen.peak)));
      }
      limit_ = options.per_process_memory_fraction < 1
                   ? static_cast<std::int64_t>(options.per_process_memory_fraction *
                                               static_cast<double>(device.total.count()))
                   : device.total.count() - device.outside.count();
      return;
    }
    if (const std::int64_t allowed = allowed_by_collections(); allowed > 0) {
      by_fraction_ = true;
      limit_ = std::max(limit_, std::min(allowed, seen.refused_from - 1));
      script_.diagnostics.push_back({"memory-fraction-inferred", Severity::info, history_.file,
                                     "the file does not hold the memory fraction, on which garbage collection depends; "
                                     "it is taken from what was collected and what was not"});
    }
    if (by_fraction_) {
      // Of a card that the file does not name. Without the fraction, half of twice the limit does as well.
      if (options.per_process_memory_fraction == 1) options.per_process_memory_fraction = 0.5;
      device.total = Bytes(static_cast<std::int64_t>(
          std::ceil(static_cast<double>(limit_) / std::max(options.per_process_memory_fraction, 1e-6))));
    } else if (seen.refused || gave_way_to_failure()) {
      device.total = Bytes(limit_);
    } else {
      return;
    }
    device.address_space = Bytes(1024 * GiB);
  }

  /// Garbage is collected when more than a share of the allowed memory is reserved, so the two lie between what was
  /// reserved when it was and when it was not. 0 when nothing was collected.
  std::int64_t allowed_by_collections() const {
    const double threshold = script_.options.garbage_collection_threshold;
    if (threshold == 0) return 0;
    std::int64_t lowest_collected = INT64_MAX;
    std::vector<std::int64_t> not_collected;
    std::int64_t reserved = initial_reserved_;
    for (std::size_t i = 0; i < history_.entries.size(); ++i) {
      const TraceEntry& entry = history_.entries[i];
      if (takes(entry.action)) {
        not_collected.push_back(reserved);
        reserved += entry.size;
      } else if (gives_back(entry.action)) {
        const std::size_t end = end_of_run(i);
        const std::int64_t before = reserved;
        bool garbage = end < history_.entries.size() && history_.entries[end].action == Action::segment_alloc;
        for (std::size_t j = i; j < end; ++j) {
          garbage = garbage && can_be_collected(history_.entries[j]);
          reserved -= history_.entries[j].size;
        }
        if (garbage) lowest_collected = std::min(lowest_collected, before);
        i = end;
        if (i < history_.entries.size() && takes(history_.entries[i].action)) reserved += history_.entries[i].size;
      }
    }
    if (lowest_collected == INT64_MAX) return 0;
    std::int64_t reached = 0;
    for (const std::int64_t bytes : not_collected) {
      if (bytes < lowest_collected) reached = std::max(reached, bytes);
    }
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(reached) / threshold));
  }

  bool gave_way_to_failure() const {
    std::int64_t reserved = initial_reserved_;
    for (std::size_t i = 0; i < history_.entries.size();) {
      const TraceEntry& entry = history_.entries[i];
      if (gives_back(entry.action)) {
        const std::size_t end = end_of_run(i);
        if (forced(i, end, reserved)) return true;
        for (; i < end; ++i) reserved -= history_.entries[i].size;
        continue;
      }
      if (takes(entry.action)) reserved += entry.size;
      ++i;
    }
    return false;
  }

  std::size_t end_of_run(std::size_t i) const {
    while (i < history_.entries.size() && gives_back(history_.entries[i].action)) ++i;
    return i;
  }

  /// Whether the segments from `begin` to `end` were given back for an allocation that found no room.
  bool forced(std::size_t begin, std::size_t end, std::int64_t reserved) const {
    if (end == history_.entries.size()) return false;
    const TraceEntry& next = history_.entries[end];
    if (next.action == Action::oom) return true;
    if (!takes(next.action)) return false;
    // The driver has to find the pages that are missing; PyTorch's own limit counts a whole segment.
    std::int64_t need = next.size;
    for (std::size_t i = end; by_fraction_ && i < history_.entries.size(); ++i) {
      if (history_.entries[i].action != Action::alloc) continue;
      need = std::max(need, asked(history_.entries[i].size));
      break;
    }
    const double threshold = script_.options.garbage_collection_threshold;
    const bool collected = threshold > 0 && static_cast<double>(reserved) > threshold * static_cast<double>(limit_) &&
                           std::all_of(history_.entries.begin() + static_cast<std::ptrdiff_t>(begin),
                                       history_.entries.begin() + static_cast<std::ptrdiff_t>(end), can_be_collected);
    return collected || reserved + need > limit_;
  }

  void number_initial_blocks() {
    for (const SegmentRecord& segment : script_.initial) {
      Address at = segment.address;
      for (const BlockRecord& block : segment.blocks) {
        if (block.state == BlockState::active_allocated) live_[at] = blocks_;
        if (block.state == BlockState::active_pending_free) waiting_[at] = blocks_;
        if (block.state != BlockState::inactive) ++blocks_;
        at += static_cast<Address>(block.size);
      }
    }
  }

  void add(Kind kind, std::size_t entry, std::uint32_t block = 0) {
    const TraceEntry& e = history_.entries[entry];
    script_.steps.push_back({kind, e.stream, e.pool, block, static_cast<std::uint32_t>(entry), e.size});
  }

  void read(std::size_t i) {
    const TraceEntry& entry = history_.entries[i];
    switch (entry.action) {
      case Action::alloc: {
        auto [block, is_new] = live_.try_emplace(entry.address, blocks_);
        if (!is_new) {  // its free was not recorded
          ++contradictions_;
          add(Kind::free, i, block->second);
          block->second = blocks_;
        }
        add(Kind::allocate, i, blocks_++);
        break;
      }
      case Action::free_requested: {
        const auto block = live_.find(entry.address);
        if (block == live_.end()) {
          ++contradictions_;
          break;
        }
        const bool at_once = !completes_ || (i + 1 < history_.entries.size() &&
                                             history_.entries[i + 1].action == Action::free_completed &&
                                             history_.entries[i + 1].address == entry.address);
        add(at_once ? Kind::free : Kind::free_later, i, block->second);
        if (!at_once) waiting_[entry.address] = block->second;
        live_.erase(block);
        break;
      }
      case Action::free_completed:
        if (const auto block = waiting_.find(entry.address); block != waiting_.end()) {
          add(Kind::complete, i, block->second);
          waiting_.erase(block);
        } else if (const auto unannounced = live_.find(entry.address); unannounced != live_.end()) {
          add(Kind::free, i, unannounced->second);  // recorded without free_requested
          live_.erase(unannounced);
        }
        break;
      case Action::segment_alloc:
      case Action::segment_map:
        reserved_ += entry.size;
        break;
      case Action::segment_free:
      case Action::segment_unmap:
        if (i == 0 || !gives_back(history_.entries[i - 1].action)) read_run(i);
        reserved_ -= entry.size;
        break;
      case Action::oom:
        add(Kind::allocate_refused, i);
        break;
    }
  }

  void read_run(std::size_t begin) {
    const std::size_t end = end_of_run(begin);
    if (forced(begin, end, reserved_)) return;
    for (std::size_t i = begin; i < end; ++i) {
      if (history_.entries[i].pool != 0) add(Kind::retire_pool, i);
    }
    add(Kind::empty_cache, begin);
  }

  const History& history_;
  ReplayScript& script_;
  std::unordered_map<Address, std::uint32_t> live_, waiting_;
  std::uint32_t blocks_ = 0;
  bool completes_ = false;
  std::int64_t initial_reserved_ = 0;
  std::int64_t reserved_ = 0;
  std::int64_t limit_ = 0;
  bool by_fraction_ = false;
  std::int64_t contradictions_ = 0;
};

}  // namespace

ReplayScript make_script(const History& history, TorchVersion torch) {
  if (history.entries.empty()) {
    throw bad_input("the history holds no events to replay", history.file,
                    "record with torch.cuda.memory._record_memory_history(enabled='all')");
  }
  ReplayScript script;
  script.options = parse_allocator_options(
      history.alloc_conf, history.torch_version.empty() ? torch : parse_torch_version(history.torch_version));
  script.device.index = history.device;
  ScriptMaker(history, script).make();
  return script;
}

ReplayConfig recorded_config(const ReplayScript& script) { return {script.options, script.device}; }

ReplayConfig other_config(const ReplayScript& script, const AllocatorOptions& options, std::optional<Bytes> memory) {
  ReplayConfig config{options, script.device};
  if (memory) {
    config.device.total = *memory;
    config.device.outside = Bytes(0);
  } else if (options.per_process_memory_fraction == 1) {
    config.options.per_process_memory_fraction = script.options.per_process_memory_fraction;
  }
  return config;
}

}  // namespace headroom
