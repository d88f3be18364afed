#include "estimator/plan/timeline.h"

#include <algorithm>

namespace headroom {

using shadow::TraceEvent;

namespace {

bool is_convolution_workspace(const shadow::Trace& trace, const shadow::TraceBlock& block) {
  return block.category == Category::workspaces && block.op >= 0 &&
         trace.texts[static_cast<std::size_t>(block.op)].find("conv") != std::string::npos;
}

}  // namespace

Timeline run_timeline(const shadow::Trace& trace, Allocator& allocator, Recording* recording) {
  Timeline t;
  std::vector<BlockId> handles(trace.blocks.size(), BlockId::null);
  allocator.reset_peaks();
  allocator.set_trace(recording ? &recording->trace : nullptr);
  t.phases.push_back({});
  const auto close = [&] {
    PhaseFigures& p = t.phases.back();
    p.allocated_peak = allocator.peak_allocated();
    p.reserved_peak = allocator.peak_reserved();
    p.allocated_end = allocator.allocated();
    p.reserved_end = allocator.reserved();
    p.requested_peak = Bytes(allocator.stats().requested_bytes.all.peak);
    t.reserved_peak = std::max(t.reserved_peak, p.reserved_peak);
  };
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    const auto block = static_cast<std::size_t>(e.index);
    const bool of_block = e.kind == TraceEvent::Kind::alloc || e.kind == TraceEvent::Kind::free;
    if (recording && of_block) recording->trace.context = recording->contexts[block];
    switch (e.kind) {
      case TraceEvent::Kind::alloc: {
        const BlockId id = allocator.allocate(trace.blocks[block].bytes);
        if (id == BlockId::out_of_memory && is_convolution_workspace(trace, trace.blocks[block])) {
          ++t.refused_workspaces;
          break;
        }
        if (id == BlockId::out_of_memory) {
          t.out_of_memory = true;
          t.oom_event = i;
          t.oom = allocator.last_oom();
          close();
          t.segments = allocator.segments();
          return t;
        }
        handles[block] = id;
        // The figures are those of the loop: what moving the model to the device took is a phase of its own.
        if (t.phases.back().phase != Phase::setup && allocator.allocated() > t.allocated_peak) {
          t.allocated_peak = allocator.allocated();
          t.peak_event = i;
          t.peak_phase = t.phases.size() - 1;
        }
        break;
      }
      case TraceEvent::Kind::free:
        if (handles[block] != BlockId::null) allocator.free(handles[block]);
        break;
      case TraceEvent::Kind::phase:
        close();
        allocator.reset_peaks();
        t.phases.push_back({.phase = e.phase, .step = e.index});
        break;
      case TraceEvent::Kind::becomes:
        break;
    }
  }
  close();
  t.segments = allocator.segments();
  return t;
}

std::vector<LiveBlock> live_blocks(const shadow::Trace& trace, std::size_t at) {
  constexpr std::uint8_t dead = 0xFF;
  std::vector<std::uint8_t> state(trace.blocks.size(), dead);
  for (std::size_t i = 0; i <= at && i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    const auto block = static_cast<std::size_t>(e.index);
    if (e.kind == TraceEvent::Kind::free)
      state[block] = dead;
    else if (e.kind != TraceEvent::Kind::phase)
      state[block] = static_cast<std::uint8_t>(e.category);
  }
  std::vector<LiveBlock> live;
  for (std::size_t b = 0; b < state.size(); ++b)
    if (state[b] != dead) live.push_back({static_cast<std::int32_t>(b), static_cast<Category>(state[b])});
  return live;
}

}  // namespace headroom
