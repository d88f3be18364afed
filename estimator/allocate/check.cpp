#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "estimator/allocate/player.h"
#include "estimator/allocate/replay.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

bool of_segments(Action action) {
  return action == Action::segment_alloc || action == Action::segment_free || action == Action::segment_map ||
         action == Action::segment_unmap;
}

/// New segments where the recording has them: the entries just before the allocation that is played.
class RecordedAddresses final : public AddressModel {
 public:
  RecordedAddresses(const History& history, Address top) : history_(history), others_(driver_addresses(top)) {}

  void at(std::uint32_t entry) { entry_ = entry; }

  Address place_segment(std::int64_t size) override {
    const TraceEntry* made = before(Action::segment_alloc);
    if (made != nullptr && made->size == size) return made->address;
    return others_->place_segment(size);
  }
  void remove_segment(Address, std::int64_t) override {}
  Address place_reservation(std::int64_t size) override {
    const TraceEntry* made = before(Action::segment_map);
    return made != nullptr ? made->address : others_->place_reservation(size);
  }

 private:
  /// The first such entry since the allocation before.
  const TraceEntry* before(Action action) const {
    const TraceEntry* found = nullptr;
    for (std::uint32_t i = entry_; i-- > 0;) {
      const TraceEntry& entry = history_.entries[i];
      if (!of_segments(entry.action) && entry.action != Action::free_completed) break;
      if (entry.action == action) found = &entry;
    }
    return found;
  }

  const History& history_;
  std::unique_ptr<AddressModel> others_;
  std::uint32_t entry_ = 0;
};

class Checker {
 public:
  Checker(const History& history, const ReplayScript& script) : history_(history), script_(script) {}

  CheckedReplay run() {
    const ReplayConfig config = recorded_config(script_);
    Address top = Address{1} << 47;
    for (const TraceEntry& entry : history_.entries) {
      if (entry.action != Action::oom) top = std::min(top, entry.address);
    }
    const bool has_addresses = config.options.backend == AllocatorBackend::native;
    auto model = std::make_unique<RecordedAddresses>(history_, top);
    RecordedAddresses* addresses = has_addresses ? model.get() : nullptr;  // owned by the allocator, if it uses one
    const std::unique_ptr<Allocator> allocator = make_allocator(config.options, config.device, std::move(model));
    Player player(script_, *allocator);
    Trace trace;
    allocator->set_trace(&trace);
    for (std::size_t i = 0; i < script_.steps.size(); ++i) {
      const ReplayScript::Step& step = script_.steps[i];
      if (addresses != nullptr) addresses->at(step.entry);
      const std::int64_t ooms = allocator->stats().num_ooms;
      const BlockId block = player.play(i);
      if (step.kind == ReplayScript::Kind::allocate && has_addresses) compare_address(step, block, *allocator);
      if (step.kind == ReplayScript::Kind::allocate_refused) {
        ++check_.oom_events_recorded;
        if (allocator->stats().num_ooms > ooms)
          ++check_.oom_events;
        else
          differ(step.entry, "the recording ran out of memory here, the replay did not");
      }
    }
    result_ = player.finish();
    if (has_addresses) {
      compare_segment_events(trace);
      compare_segments();
    }
    compare_peaks();
    return {std::move(result_), std::move(check_)};
  }

 private:
  void differ(std::uint32_t entry, const std::string& what) {
    if (check_.first_difference.empty()) check_.first_difference = fmt::format("event {}: {}", entry, what);
  }

  void compare_address(const ReplayScript::Step& step, BlockId block, const Allocator& allocator) {
    ++check_.addresses;
    if (block == BlockId::null) {
      if (step.bytes > 0) differ(step.entry, "the replay ran out of memory here, the recording did not");
      return;
    }
    const Address recorded = history_.entries[step.entry].address;
    const Address replayed = allocator.address(block);
    if (recorded == replayed)
      ++check_.addresses_equal;
    else
      differ(step.entry, fmt::format("{} bytes lie at {:#x}, in the replay at {:#x}", step.bytes, recorded, replayed));
  }

  void compare_segment_events(const Trace& trace) {
    auto replayed = trace.entries.begin();
    for (std::uint32_t i = 0; i < history_.entries.size(); ++i) {
      const TraceEntry& recorded = history_.entries[i];
      if (!of_segments(recorded.action)) continue;
      ++check_.segment_events;
      replayed = std::find_if(replayed, trace.entries.end(), [](const TraceEntry& e) { return of_segments(e.action); });
      if (replayed == trace.entries.end()) {
        differ(i, fmt::format("{} of {} bytes did not happen in the replay", name_of(recorded.action), recorded.size));
        continue;
      }
      if (replayed->action == recorded.action && replayed->size == recorded.size &&
          replayed->address == recorded.address) {
        ++check_.segment_events_equal;
      } else {
        differ(i, fmt::format("{} of {} bytes, in the replay {} of {}", name_of(recorded.action), recorded.size,
                              name_of(replayed->action), replayed->size));
      }
      ++replayed;
    }
  }

  void compare_segments() {
    std::map<Address, const SegmentRecord*> replayed;
    for (const SegmentRecord& segment : result_.segments) replayed.emplace(segment.address, &segment);
    for (const SegmentRecord& recorded : history_.segments) {
      ++check_.segments;
      check_.blocks += static_cast<std::int64_t>(recorded.blocks.size());
      const auto found = replayed.find(recorded.address);
      if (found == replayed.end() || found->second->size != recorded.size) continue;
      ++check_.segments_equal;
      const std::vector<BlockRecord>& blocks = found->second->blocks;
      for (std::size_t i = 0; i < std::min(blocks.size(), recorded.blocks.size()); ++i) {
        const BlockRecord& a = recorded.blocks[i];
        const BlockRecord& b = blocks[i];
        const bool same_request = a.state == BlockState::inactive || a.requested == b.requested;
        if (a.size == b.size && a.state == b.state && same_request) ++check_.blocks_equal;
      }
    }
    const auto last = static_cast<std::uint32_t>(history_.entries.size());
    if (check_.segments_equal != check_.segments) differ(last, "the segments at the end differ");
    if (check_.blocks_equal != check_.blocks) differ(last, "the blocks at the end differ");
  }

  void compare_peaks() {
    const auto compare = [&](const char* name, const std::optional<std::int64_t>& recorded, const PoolStat& stat) {
      if (!recorded) return;
      check_.peaks.push_back({name, *recorded, stat.all.peak});
      if (*recorded != stat.all.peak) {
        differ(static_cast<std::uint32_t>(history_.entries.size()),
               fmt::format("{} peaked at {} bytes, in the replay at {}", name, *recorded, stat.all.peak));
      }
    };
    compare("allocated", history_.peaks.allocated, result_.stats.allocated_bytes);
    compare("reserved", history_.peaks.reserved, result_.stats.reserved_bytes);
    compare("active", history_.peaks.active, result_.stats.active_bytes);
    compare("requested", history_.peaks.requested, result_.stats.requested_bytes);
  }

  const History& history_;
  const ReplayScript& script_;
  ReplayResult result_;
  ReplayCheck check_;
};

}  // namespace

bool ReplayCheck::all_equal() const { return first_difference.empty(); }

CheckedReplay check_replay(const History& history, const ReplayScript& script) {
  return Checker(history, script).run();
}

}  // namespace headroom
