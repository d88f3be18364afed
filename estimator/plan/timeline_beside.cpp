#include "estimator/plan/timeline_beside.h"

#include <utility>

namespace headroom {
namespace {

/// Fewer events are served sooner than a thread starts.
constexpr std::size_t worth_a_thread = 1024;

}  // namespace

TimelineBeside::TimelineBeside(const AllocatorOptions& options)
    : allocator_(make_allocator(options)), playback_(*allocator_) {}

TimelineBeside::~TimelineBeside() { close(); }

void TimelineBeside::more(const shadow::Trace& trace) {
  if (trace.events.size() - handed_over_ < worth_a_thread) return;
  Stretch stretch = stretch_from(trace, handed_over_);
  handed_over_ = trace.events.size();
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(stretch));
  }
  changed_.notify_one();
  if (!worker_.valid()) worker_ = std::async([this] { serve_handed_over(); });
}

std::optional<Timeline> TimelineBeside::finish(const shadow::Trace& trace) {
  close();
  if (worker_.valid()) worker_.get();
  if (refused_ || !serve(stretch_from(trace, handed_over_))) return std::nullopt;
  return playback_.finish();
}

TimelineBeside::Stretch TimelineBeside::stretch_from(const shadow::Trace& trace, std::size_t event) {
  Stretch s{.events = {trace.events.begin() + static_cast<std::ptrdiff_t>(event), trace.events.end()}, .sizes = {}};
  s.sizes.reserve(s.events.size());
  for (const shadow::TraceEvent& e : s.events)
    s.sizes.push_back(e.of_block() ? trace.blocks[static_cast<std::size_t>(e.index)].bytes : Bytes());
  return s;
}

void TimelineBeside::serve_handed_over() {
  while (!refused_) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Stretch stretch = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    refused_ = !serve(stretch);
  }
}

bool TimelineBeside::serve(const Stretch& stretch) {
  for (std::size_t i = 0; i < stretch.events.size(); ++i)
    if (!playback_.serve(stretch.events[i], stretch.sizes[i])) return false;
  return true;
}

void TimelineBeside::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

}  // namespace headroom
