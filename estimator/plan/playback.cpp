#include "estimator/plan/playback.h"

#include <algorithm>
#include <utility>

namespace headroom {

using shadow::TraceEvent;

Playback::Playback(Allocator& allocator) : allocator_(allocator) {
  allocator_.reset_peaks();
  timeline_.phases.push_back({});
}

bool Playback::serve(const TraceEvent& e, Bytes bytes) {
  const std::size_t place = served_++;
  const auto block = static_cast<std::size_t>(e.index);
  switch (e.kind) {
    case TraceEvent::Kind::alloc: {
      if (block >= handles_.size()) handles_.resize(std::max(block + 1, 2 * handles_.size()), BlockId::null);
      const BlockId id = allocator_.allocate(bytes);
      if (id == BlockId::out_of_memory) return false;
      handles_[block] = id;
      // The figures are those of the loop: what moving the model to the device took is a phase of its own.
      if (timeline_.phases.back().phase != Phase::setup && allocator_.allocated() > timeline_.allocated_peak) {
        timeline_.allocated_peak = allocator_.allocated();
        timeline_.peak_event = place;
        timeline_.peak_phase = timeline_.phases.size() - 1;
      }
      break;
    }
    case TraceEvent::Kind::free:
      if (handles_[block] != BlockId::null) allocator_.free(handles_[block]);
      break;
    case TraceEvent::Kind::phase:
      close_phase();
      allocator_.reset_peaks();
      timeline_.phases.push_back({.phase = e.phase, .step = e.index});
      break;
    case TraceEvent::Kind::cudnn:
      allocator_.cudnn_loaded();
      break;
    case TraceEvent::Kind::becomes:
      break;
  }
  return true;
}

Timeline Playback::out_of_memory() {
  timeline_.out_of_memory = true;
  timeline_.oom_event = served_ - 1;
  timeline_.oom = allocator_.last_oom();
  return finish();
}

Timeline Playback::finish() {
  close_phase();
  timeline_.segments = allocator_.segments();
  return std::move(timeline_);
}

void Playback::close_phase() {
  PhaseFigures& p = timeline_.phases.back();
  p.allocated_peak = allocator_.peak_allocated();
  p.reserved_peak = allocator_.peak_reserved();
  p.allocated_end = allocator_.allocated();
  p.reserved_end = allocator_.reserved();
  p.requested_peak = Bytes(allocator_.stats().requested_bytes.all.peak);
  timeline_.reserved_peak = std::max(timeline_.reserved_peak, p.reserved_peak);
}

}  // namespace headroom
