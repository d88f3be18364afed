#include "estimator/plan/timeline.h"

#include "estimator/plan/playback.h"

namespace headroom {

using shadow::TraceEvent;

namespace {

bool is_convolution_workspace(const shadow::Trace& trace, const shadow::TraceBlock& block) {
  return block.category == Category::workspaces && block.op >= 0 &&
         trace.texts[static_cast<std::size_t>(block.op)].find("conv") != std::string::npos;
}

}  // namespace

Timeline run_timeline(const shadow::Trace& trace, Allocator& allocator, Recording* recording) {
  Playback playback(allocator);
  allocator.set_trace(recording ? &recording->trace : nullptr);
  for (const TraceEvent& e : trace.events) {
    const auto index = static_cast<std::size_t>(e.index);
    const bool of_block = e.of_block();
    if (recording && of_block && e.kind != TraceEvent::Kind::becomes)
      recording->trace.context = recording->contexts[index];
    if (playback.serve(e, of_block ? trace.blocks[index].bytes : Bytes())) continue;
    if (!is_convolution_workspace(trace, trace.blocks[index])) return playback.out_of_memory();
    playback.pass_over();
  }
  return playback.finish();
}

std::vector<LiveBlock> live_blocks(const shadow::Trace& trace, std::size_t at) {
  constexpr std::uint8_t dead = 0xFF;
  std::vector<std::uint8_t> state(trace.blocks.size(), dead);
  for (std::size_t i = 0; i <= at && i < trace.events.size(); ++i) {
    const TraceEvent& e = trace.events[i];
    const auto block = static_cast<std::size_t>(e.index);
    if (e.kind == TraceEvent::Kind::free)
      state[block] = dead;
    else if (e.of_block())
      state[block] = static_cast<std::uint8_t>(e.category);
  }
  std::vector<LiveBlock> live;
  for (std::size_t b = 0; b < state.size(); ++b)
    if (state[b] != dead) live.push_back({static_cast<std::int32_t>(b), static_cast<Category>(state[b])});
  return live;
}

}  // namespace headroom
