#include "estimator/allocate/player.h"

#include <algorithm>
#include <utility>

namespace headroom {
namespace {

constexpr std::size_t timeline_points = 512;
constexpr std::size_t most_ooms = 100;

}  // namespace

Player::Player(const ReplayScript& script, Allocator& allocator, bool same_segments)
    : script_(script), allocator_(allocator) {
  handles_.assign(script.blocks, BlockId::null);
  stride_ = std::max<std::size_t>(1, (script.steps.size() + timeline_points - 1) / timeline_points);
  if (same_segments) {
    const std::vector<BlockId> initial = allocator_.restore(script.initial);
    std::copy(initial.begin(), initial.end(), handles_.begin());
  } else {
    allocate_initial();
  }
}

void Player::allocate_initial() {
  std::size_t next = 0;
  for (const SegmentRecord& segment : script_.initial) {
    for (const BlockRecord& record : segment.blocks) {
      if (record.state == BlockState::inactive) continue;
      BlockId block = allocator_.allocate(Bytes(record.requested), segment.stream, segment.pool);
      if (block == BlockId::out_of_memory) {
        note_oom({}, false);
        block = BlockId::null;
      } else if (record.state == BlockState::active_pending_free) {
        allocator_.record_stream(block, segment.stream + 1);
        allocator_.free(block);
      }
      handles_[next++] = block;
    }
  }
}

BlockId Player::play(std::size_t index) {
  const ReplayScript::Step& step = script_.steps[index];
  BlockId block = BlockId::null;
  switch (step.kind) {
    case ReplayScript::Kind::allocate:
      block = allocator_.allocate(Bytes(step.bytes), step.stream, step.pool);
      if (block == BlockId::out_of_memory) {
        note_oom(step, false);
        block = BlockId::null;
      }
      handles_[step.block] = block;
      break;
    case ReplayScript::Kind::allocate_refused: {
      const BlockId granted = allocator_.allocate(Bytes(step.bytes), step.stream, step.pool);
      if (granted == BlockId::out_of_memory) {
        note_oom(step, true);
      } else {
        ++result_.avoided_ooms;
        allocator_.free(granted);
      }
      break;
    }
    case ReplayScript::Kind::free:
      allocator_.free(handles_[step.block]);
      break;
    case ReplayScript::Kind::free_later:
      free_later(step);
      break;
    case ReplayScript::Kind::complete:
      complete(step);
      break;
    case ReplayScript::Kind::empty_cache:
      allocator_.empty_cache();
      break;
    case ReplayScript::Kind::retire_pool:
      allocator_.retire_pool(step.pool);
      break;
  }
  if (index % stride_ == 0 || index + 1 == script_.steps.size()) result_.timeline.push_back(point(step.entry));
  note_peaks(step.entry);
  return block;
}

ReplayResult Player::finish() {
  result_.stats = allocator_.stats();
  result_.segments = allocator_.segments();
  result_.diagnostics = script_.diagnostics;
  return std::move(result_);
}

void Player::free_later(const ReplayScript::Step& step) {
  const BlockId block = handles_[step.block];
  allocator_.record_stream(block, step.stream + 1);
  allocator_.free(block);
  waiting_since_[step.block] = allocator_.stats().num_sync_all_streams;
}

/// A retry or empty_cache in between has completed all that waited, and the handle may be another block's by now.
void Player::complete(const ReplayScript::Step& step) {
  const auto waiting = waiting_since_.find(step.block);
  const std::int64_t since = waiting == waiting_since_.end() ? 0 : waiting->second;
  if (waiting != waiting_since_.end()) waiting_since_.erase(waiting);
  if (allocator_.stats().num_sync_all_streams == since) allocator_.complete(handles_[step.block]);
}

ReplayPoint Player::point(std::uint32_t entry) const {
  const MemoryStats& stats = allocator_.stats();
  return {entry,
          stats.allocated_bytes.all.current,
          stats.reserved_bytes.all.current,
          stats.active_bytes.all.current,
          stats.requested_bytes.all.current,
          stats.inactive_split_bytes.all.current};
}

void Player::note_peaks(std::uint32_t entry) {
  const MemoryStats& stats = allocator_.stats();
  if (stats.allocated_bytes.all.current > result_.at_peak_allocated.allocated) result_.at_peak_allocated = point(entry);
  if (stats.reserved_bytes.all.current > result_.at_peak_reserved.reserved) result_.at_peak_reserved = point(entry);
}

void Player::note_oom(const ReplayScript::Step& step, bool recorded) {
  ++result_.oom_events;
  if (result_.ooms.size() < most_ooms) result_.ooms.push_back({step.entry, allocator_.last_oom(), recorded});
}

}  // namespace headroom
