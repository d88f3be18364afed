#include "estimator/allocate/replay.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "estimator/allocate/async.h"
#include "estimator/allocate/player.h"

namespace headroom {
namespace {

/// Below everything that was recorded, so that new segments cannot meet old ones.
std::optional<Address> below_recorded(const std::vector<SegmentRecord>& segments) {
  std::optional<Address> below;
  for (const SegmentRecord& segment : segments) below = std::min(below.value_or(segment.address), segment.address);
  return below;
}

}  // namespace

double ReplayResult::fragmentation() const {
  if (at_peak_reserved.reserved == 0) return 0;
  return 1 - static_cast<double>(at_peak_reserved.allocated) / static_cast<double>(at_peak_reserved.reserved);
}

ReplayResult replay(const ReplayScript& script, const ReplayConfig& config) {
  const std::unique_ptr<Allocator> allocator =
      make_allocator(config.options, config.device, driver_addresses(below_recorded(script.initial)));
  const bool same_segments = config.options.expandable_segments == script.options.expandable_segments &&
                             config.options.backend == script.options.backend;
  Player player(script, *allocator, same_segments);
  for (std::size_t i = 0; i < script.steps.size(); ++i) player.play(i);
  ReplayResult result = player.finish();
  if (!same_segments && !script.initial.empty()) {
    result.diagnostics.push_back(
        {"initial-segments-replaced", Severity::info, "",
         "the history starts in the middle, with segments that these settings would not have made; "
         "what lived in them was allocated again, what was cached is left out"});
  }
  if (config.options.backend == AllocatorBackend::cuda_malloc_async) {
    result.diagnostics.push_back(
        {"async-reserved", Severity::info, "",
         "cudaMallocAsync: reserved is a model of the driver's pool, bounded by measurement",
         Bytes(static_cast<std::int64_t>(AsyncAllocator::reserved_bound *
                                         static_cast<double>(result.stats.reserved_bytes.all.peak)))});
  }
  return result;
}

std::vector<LeakSite> find_leaks(const History& history, const ReplayScript& script, std::size_t most) {
  constexpr std::uint32_t spans = 16;
  std::vector<std::int64_t> born(script.blocks, -1);
  for (const ReplayScript::Step& step : script.steps) {
    if (step.kind == ReplayScript::Kind::allocate) born[step.block] = step.entry;
    if (step.kind == ReplayScript::Kind::free || step.kind == ReplayScript::Kind::free_later) born[step.block] = -1;
  }
  struct Survivors {
    LeakSite site;
    std::uint32_t in_spans = 0;  // bits
  };
  std::map<std::pair<std::string, std::int64_t>, Survivors> by_place;
  const auto total = static_cast<double>(history.entries.size());
  for (const std::int64_t entry : born) {
    if (entry < 0) continue;
    const TraceEntry& made = history.entries[static_cast<std::size_t>(entry)];
    const std::string site = history.call_site(made.context);
    const double when = static_cast<double>(entry) / total;
    Survivors& all = by_place[{site, site.empty() ? made.size : 0}];
    if (all.site.count == 0) all.site.first = when;
    all.site.call_site = site;
    all.site.bytes_each = made.size;
    all.site.last = when;
    all.site.bytes += made.size;
    ++all.site.count;
    all.in_spans |= 1U << static_cast<std::uint32_t>(when * spans);
  }
  std::vector<LeakSite> leaks;
  for (const auto& [place, all] : by_place) {
    if (std::popcount(all.in_spans) >= 3 && all.site.last - all.site.first >= 0.5) leaks.push_back(all.site);
  }
  std::sort(leaks.begin(), leaks.end(), [](const LeakSite& a, const LeakSite& b) { return a.bytes > b.bytes; });
  if (leaks.size() > most) leaks.resize(most);
  return leaks;
}

}  // namespace headroom
