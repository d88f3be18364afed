#include "estimator/plan/checkpoint/part_walker.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace headroom {
namespace {

constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::min() / 4;

}  // namespace

PartWalker::PartWalker(const StepProfile& p)
    : p_(p),
      dies_(p.blocks.size(), p.events.size()),
      before_(p.blocks.size()),
      saved_(p.blocks.size()),
      arguments_(p.blocks.size()),
      work_before_(1 + p.keeps.size(), std::vector<std::int64_t>(p.calls + 1)) {
  for (std::size_t e = 0; e < p.events.size(); ++e)
    if (p.events[e].block >= 0 && !p.events[e].made) dies_[static_cast<std::size_t>(p.events[e].block)] = e;
  for (std::size_t k = 0; k < work_before_.size(); ++k)
    for (std::size_t c = 0; c < p.calls; ++c) {
      const bool kept = k > 0 && (p.call[c].kept >> (k - 1) & 1) != 0;
      work_before_[k][c + 1] = work_before_[k][c] + (kept ? p.call[c].work_beside : p.call[c].work);
    }
  find_late();
}

Part PartWalker::keep(std::size_t begin, std::size_t end, const Blocks& shared) {
  start(shared);
  std::int64_t forward = begin == 0 ? p_.live_at_start : nothing, backward = nothing, dead = 0, saved = 0;
  std::int64_t late = 0, after_late = nothing;
  bool late_gone = false;
  Blocks held = shared;
  for (std::size_t c = begin; c < end; ++c) {
    for (std::size_t n = p_.call[c].node; n < p_.call[c + 1].node; ++n) {
      const StepProfile::Node& node = p_.nodes[n];
      const std::int64_t below = saved;
      for (std::size_t s = node.saves_begin; s < node.saves_end; ++s) {
        const std::int32_t b = p_.saves[s];
        if (b < 0 || !saved_.add(b) || before_.has(b)) continue;
        if (late_[static_cast<std::size_t>(b)])
          late += block(b).bytes;
        else
          held.push_back(b);
        if (!block(b).outlives) saved += block(b).bytes;
      }
      if (!node.runs) continue;
      backward = std::max({backward, std::max(node.applying, node.leaving) + saved, node.after + below});
    }
    for (std::size_t e = p_.call[c].event; e < p_.call[c + 1].event; ++e) {
      const StepProfile::Event& event = p_.events[e];
      const std::int32_t b = event.block;
      if (event.made) {
        std::int64_t& peak = late_gone ? after_late : forward;
        peak = std::max(peak, event.live + dead);
      } else if (b >= 0) {
        if (late_[static_cast<std::size_t>(b)])
          late_gone = true;
        else if (before_.has(b) || saved_.has(b))
          dead += block(b).bytes;
      }
    }
  }
  Part part{.end = end, .forward = forward, .held = dead, .late = late};
  part.backward = std::max(after_late, backward == nothing ? nothing : backward + before_bytes_);
  part.shared = alive_at(end, held);
  return part;
}

std::vector<Part> PartWalker::checkpoint(std::size_t begin, std::span<const std::size_t> ends, const Blocks& shared,
                                         std::optional<std::size_t> keep) {
  const auto bit = static_cast<std::uint8_t>(keep ? 1U << *keep : 0U);
  const std::vector<std::int64_t>& work_before = work_before_[keep ? 1 + *keep : 0];
  std::vector<Part> found;
  start(shared);
  arguments_.clear();
  Blocks held = shared;
  std::int64_t forward = nothing, dead = 0;           // while it runs first
  std::int64_t live = 0, most = 0, most_at_stop = 0;  // while it runs again: what it makes
  std::int64_t begins_at = nothing;                   // what else lives when that starts
  std::int64_t arguments = 0, saved = 0;              // that only the segment holds
  std::int64_t kept = 0, taken = 0;                   // results: of the first run, and those that the rerun takes
  std::int64_t outside = nothing, inside = nothing;   // nodes whose segment is gone; others, without arguments
  std::int64_t rest = nothing, rest_saved = nothing;  // nodes after the last that saves: before and after a rerun
  std::size_t stop = begin;
  bool any = false, any_kept = false;
  const std::size_t level = p_.call[begin].level;
  std::size_t common = p_.call[begin].depth;
  auto next = std::upper_bound(ends.begin(), ends.end(), begin);
  for (std::size_t c = begin; c < p_.calls && next != ends.end(); ++c) {
    const StepProfile::Call& call = p_.call[c];
    if (c > begin) common = std::min(common, call.level);
    if (common < level) return found;
    for (const std::int32_t b : call.reads) {
      if (block(b).made >= begin || !arguments_.add(b)) continue;
      if (block(b).written > begin) return found;
      if (before_.has(b)) continue;
      held.push_back(b);
      if (!block(b).outlives) arguments += block(b).bytes;
    }
    for (std::size_t n = call.node; n < p_.call[c + 1].node; ++n) {
      const StepProfile::Node& node = p_.nodes[n];
      const std::int64_t below = saved;
      const bool saves = node.saves_begin != node.saves_end, first = saves && !any;
      for (std::size_t s = node.saves_begin; s < node.saves_end; ++s) {
        const std::int32_t b = p_.saves[s];
        if (b < 0 || (block(b).made < begin && arguments_.has(b)) || !saved_.add(b)) continue;
        saved += block(b).bytes;
        // A cast that autocast had cached is made again.
        if (block(b).made < begin) most = std::max(most, live += block(b).bytes);
      }
      if (saves) {
        any = true;
        stop = c;
        most_at_stop = most;
        taken = kept;
        inside = std::max(inside, rest_saved);
        rest = rest_saved = nothing;
      }
      if (!node.runs) continue;
      if (!any) {
        outside = std::max({outside, node.applying, node.leaving, node.after});
        continue;
      }
      if (saves) {
        begins_at = node.begin;
        inside = std::max({inside, node.applying + saved, node.leaving + below});
        (first ? outside : inside) = std::max(first ? outside : inside, node.after + below);
      } else {
        const std::int64_t all = std::max({node.applying, node.leaving, node.after});
        rest = std::max(rest, all);
        rest_saved = std::max(rest_saved, all + saved);
      }
    }
    for (std::size_t e = call.event; e < p_.call[c + 1].event; ++e) {
      const StepProfile::Event& event = p_.events[e];
      const std::int32_t b = event.block;
      if (event.made) {
        forward = std::max(forward, event.live + dead);
        if (b < 0) continue;
        const bool before_stop = stop == c && static_cast<std::size_t>(b) < call.made_at_last_save;
        if ((block(b).kept & bit) != 0) {
          if (block(b).written > 0) return found;  // PyTorch refuses to hand out what was written since
          any_kept = true;
          held.push_back(b);
          if (block(b).outlives) continue;
          kept += block(b).bytes;
          if (before_stop) taken = kept;
          continue;
        }
        most = std::max(most, live += block(b).bytes);
        if (before_stop) most_at_stop = most;
      } else if (b >= 0) {
        const bool made_here = block(b).made >= begin;
        if (before_.has(b) || arguments_.has(b) || (made_here && (block(b).kept & bit) != 0)) dead += block(b).bytes;
        if (made_here && !saved_.has(b)) live -= block(b).bytes;
      }
    }
    if (*next != c + 1) continue;
    ++next;
    if (!any || common < p_.call[c + 1].level || (keep && !any_kept)) continue;
    std::int64_t backward = std::max(outside, arguments + std::max(inside + kept - taken, rest + kept));
    if (begins_at != nothing) backward = std::max(backward, begins_at + arguments + kept + most_at_stop);
    Part part{.end = c + 1, .forward = forward, .held = dead};
    part.backward = backward + before_bytes_;
    part.work = rerun_work + work_before[stop] - work_before[begin];
    const StepProfile::Call& last = p_.call[stop];
    part.work += (last.kept & bit) == 0 ? last.work_as_last : std::min(last.work_as_last, last.work_beside);
    part.shared = alive_at(c + 1, held);
    found.push_back(std::move(part));
  }
  return found;
}

void PartWalker::start(const Blocks& shared) {
  before_.clear();
  saved_.clear();
  before_bytes_ = 0;
  for (const std::int32_t b : shared) {
    before_.add(b);
    if (!block(b).outlives) before_bytes_ += block(b).bytes;
  }
}

/// Of `held`, what variables still hold in front of the call.
Blocks PartWalker::alive_at(std::size_t call, const Blocks& held) const {
  Blocks out;
  for (const std::int32_t b : held)
    if (dies_[static_cast<std::size_t>(b)] >= p_.call[call].event) out.push_back(b);
  std::sort(out.begin(), out.end());
  return out;
}

/// Casts in autocast's cache that the nodes of one call save: nothing after that call asks for them.
void PartWalker::find_late() {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> saver(p_.blocks.size(), none);
  late_.assign(p_.blocks.size(), 0);
  for (std::size_t c = 0; c <= p_.calls; ++c)
    for (std::size_t n = p_.call[c].node; n < p_.call[c + 1].node; ++n)
      for (std::size_t k = p_.nodes[n].saves_begin; k < p_.nodes[n].saves_end; ++k) {
        if (p_.saves[k] < 0) continue;
        const auto b = static_cast<std::size_t>(p_.saves[k]);
        const bool cached = !p_.blocks[b].variable && !p_.blocks[b].outlives && p_.blocks[b].made == c &&
                            c < p_.calls && dies_[b] >= p_.call[p_.calls].event;
        late_[b] = cached && (saver[b] == none || saver[b] == c);
        saver[b] = c;
      }
  late_before_.assign(p_.calls + 2, 0);
  for (std::size_t b = 0; b < late_.size(); ++b)
    if (late_[b]) late_before_[p_.blocks[b].made + 1] += p_.blocks[b].bytes;
  std::partial_sum(late_before_.begin(), late_before_.end(), late_before_.begin());
}

}  // namespace headroom
