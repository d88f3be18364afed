// TimelineBeside: the allocator serves a trace while it is still being recorded.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "estimator/plan/playback.h"

namespace headroom {

/// Of a device without a card's limits: what lies outside of the allocator is known only after the last step.
class TimelineBeside {
 public:
  explicit TimelineBeside(const AllocatorOptions& options);
  ~TimelineBeside();

  /// Hands over what `trace` has more than the last time, once that is worth it. For Recorder::on_phase.
  void more(const shadow::Trace& trace);
  /// The timeline of all of `trace`, which is complete now. Nothing when a request was refused: run_timeline knows what
  /// follows from that. Call once.
  std::optional<Timeline> finish(const shadow::Trace& trace);

 private:
  /// A copy, since the trace moves as it grows.
  struct Stretch {
    std::vector<shadow::TraceEvent> events;
    std::vector<Bytes> sizes;  ///< of each event's block
  };
  static Stretch stretch_from(const shadow::Trace& trace, std::size_t event);
  void serve_handed_over();
  bool serve(const Stretch& stretch);
  void close();

  std::unique_ptr<Allocator> allocator_;
  Playback playback_;
  std::size_t handed_over_ = 0;  ///< events
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Stretch> waiting_;
  bool closed_ = false;
  bool refused_ = false;
  std::future<void> worker_;  ///< last: it uses all of this
};

}  // namespace headroom
