#include "estimator/plan/checkpoint/placement.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>
#include <utility>

namespace headroom {
namespace {

constexpr std::size_t most_pairs = 30'000;  ///< of cuts with a segment between them
constexpr std::size_t most_points = 256;    ///< of one state's front
constexpr std::size_t most_states = 24;     ///< of one cut
constexpr std::int64_t nothing = std::numeric_limits<std::int64_t>::min() / 4;

using Blocks = std::vector<std::int32_t>;  ///< sorted

/// What one part of the forward pass does to a prefix that ends in front of it.
struct Part {
  std::size_t end = 0;        ///< call
  std::int64_t forward = 0;   ///< most that lives while it runs, besides what only the prefix holds
  std::int64_t backward = 0;  ///< the same of its backward
  std::int64_t held = 0;      ///< what backward keeps and no variable does, when it ends
  std::int64_t late = 0;      ///< what backward keeps, and until the end of the forward pass autocast's cache as well
  std::int64_t work = 0;
  Blocks shared;  ///< what backward keeps and variables do too
};

/// Marks on blocks that are forgotten at once.
class Marks {
 public:
  explicit Marks(std::size_t blocks) : at_(blocks) {}
  void clear() { ++now_; }
  bool has(std::int32_t b) const { return at_[static_cast<std::size_t>(b)] == now_; }
  /// False when it was marked before.
  bool add(std::int32_t b) { return std::exchange(at_[static_cast<std::size_t>(b)], now_) != now_; }

 private:
  std::vector<std::uint32_t> at_;
  std::uint32_t now_ = 1;
};

/// Walks over parts of the forward pass and says what they need.
class Walker {
 public:
  explicit Walker(const StepProfile& p)
      : p_(p),
        dies_(p.blocks.size(), p.events.size()),
        before_(p.blocks.size()),
        saved_(p.blocks.size()),
        arguments_(p.blocks.size()),
        work_before_(p.calls + 1) {
    for (std::size_t e = 0; e < p.events.size(); ++e)
      if (p.events[e].block >= 0 && !p.events[e].made) dies_[static_cast<std::size_t>(p.events[e].block)] = e;
    for (std::size_t c = 0; c < p.calls; ++c) work_before_[c + 1] = work_before_[c] + p.call[c].work;
    find_late();
  }

  /// Some part keeps blocks that count in backward only.
  bool any_late() const { return any_late_; }

  /// [begin, end) without a checkpoint, after a prefix that holds `shared`.
  Part keep(std::size_t begin, std::size_t end, const Blocks& shared) {
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

  /// Segments from `begin` on: `found(part)` for each end that `ends` (ascending) names and that makes one.
  template <class Found>
  void checkpoint(std::size_t begin, std::span<const std::size_t> ends, const Blocks& shared, Found&& found) {
    start(shared);
    arguments_.clear();
    Blocks held = shared;
    std::int64_t forward = nothing, dead = 0;           // while it runs first
    std::int64_t live = 0, most = 0, most_at_stop = 0;  // while it runs again: what it makes
    std::int64_t begins_at = nothing;                   // what else lives when that starts
    std::int64_t arguments = 0, saved = 0;              // that only the segment holds
    std::int64_t outside = nothing, inside = nothing;   // nodes whose segment is gone; others, without arguments
    std::int64_t rest = nothing, rest_saved = nothing;  // nodes after the last that saves: before and after a rerun
    std::size_t stop = begin;
    bool any = false;
    const std::size_t level = p_.call[begin].level;
    std::size_t common = p_.call[begin].depth;
    auto next = std::upper_bound(ends.begin(), ends.end(), begin);
    for (std::size_t c = begin; c < p_.calls && next != ends.end(); ++c) {
      const StepProfile::Call& call = p_.call[c];
      if (c > begin) common = std::min(common, call.level);
      if (common < level) return;
      for (const std::int32_t b : call.reads) {
        if (block(b).made >= begin || !arguments_.add(b)) continue;
        if (block(b).written > begin) return;
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
          most = std::max(most, live += block(b).bytes);
          if (stop == c && static_cast<std::size_t>(b) < call.made_at_last_save) most_at_stop = most;
        } else if (b >= 0) {
          if (before_.has(b) || arguments_.has(b)) dead += block(b).bytes;
          if (block(b).made >= begin && !saved_.has(b)) live -= block(b).bytes;
        }
      }
      if (*next != c + 1) continue;
      ++next;
      if (!any || common < p_.call[c + 1].level) continue;
      std::int64_t backward = std::max(outside, arguments + std::max(inside, rest));
      if (begins_at != nothing) backward = std::max(backward, begins_at + arguments + most_at_stop);
      Part part{.end = c + 1, .forward = forward, .held = dead};
      part.backward = backward + before_bytes_;
      part.work = rerun_work + work_before_[stop] - work_before_[begin] + p_.call[stop].work_as_last;
      part.shared = alive_at(c + 1, held);
      found(std::move(part));
    }
  }

 private:
  const StepProfile::Block& block(std::int32_t b) const { return p_.blocks[static_cast<std::size_t>(b)]; }

  void start(const Blocks& shared) {
    before_.clear();
    saved_.clear();
    before_bytes_ = 0;
    for (const std::int32_t b : shared) {
      before_.add(b);
      if (!block(b).outlives) before_bytes_ += block(b).bytes;
    }
  }

  /// Of `held`, what variables still hold in front of the call.
  Blocks alive_at(std::size_t call, const Blocks& held) const {
    Blocks out;
    for (const std::int32_t b : held)
      if (dies_[static_cast<std::size_t>(b)] >= p_.call[call].event) out.push_back(b);
    std::sort(out.begin(), out.end());
    return out;
  }

  /// Casts in autocast's cache that the nodes of one call save: nothing after that call asks for them.
  void find_late() {
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
    any_late_ = std::find(late_.begin(), late_.end(), 1) != late_.end();
  }

  const StepProfile& p_;
  std::vector<std::size_t> dies_;  ///< by block: event; the end when nothing in the forward pass ends it
  Marks before_, saved_, arguments_;
  std::int64_t before_bytes_ = 0;
  std::vector<std::int64_t> work_before_;
  std::vector<char> late_;
  bool any_late_ = false;
};

/// Calls in front of which a segment may begin or end: all, or as many as there is time for.
std::vector<std::size_t> cuts_of(const StepProfile& p, bool& exact) {
  std::vector<std::size_t> cuts(p.calls + 1);
  for (std::size_t c = 0; c < cuts.size(); ++c) cuts[c] = c;
  const auto live = [&](std::size_t c) {
    return p.call[c].event == 0 ? p.live_at_start : p.events[p.call[c].event - 1].live;
  };
  while (true) {
    std::map<std::size_t, std::size_t> pairs;  // by level
    std::size_t all = 0;
    for (std::size_t i = 0; i < cuts.size() && all <= 64 * most_pairs; ++i) {
      const std::size_t level = p.call[cuts[i]].level;
      for (std::size_t k = i + 1; k < cuts.size(); ++k) {
        ++pairs[level];
        ++all;
        if (p.call[cuts[k]].level < level) break;
      }
    }
    if (all <= most_pairs || cuts.size() <= 3) return cuts;
    exact = false;
    const std::size_t crowded = std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
                                  return a.second < b.second;
                                })->first;
    // Between neighbours of its level, a cut that more lives at is of less use; of equals, every second goes.
    std::vector<std::size_t> of_level;
    for (const std::size_t c : cuts)
      if (c != 0 && c != p.calls && p.call[c].level == crowded) of_level.push_back(c);
    std::vector<std::size_t> dropped;
    for (std::size_t i = 1; i + 1 < of_level.size(); ++i)
      if (live(of_level[i]) > std::min(live(of_level[i - 1]), live(of_level[i + 1]))) dropped.push_back(of_level[i]);
    if (dropped.empty())
      for (std::size_t i = 0; i < of_level.size(); i += 2) dropped.push_back(of_level[i]);
    if (dropped.empty()) return cuts;
    std::erase_if(cuts, [&](std::size_t c) { return std::binary_search(dropped.begin(), dropped.end(), c); });
  }
}

class Table {
 public:
  Table(const StepProfile& p, const SegmentFilter& allowed) : p_(p), allowed_(allowed), walker_(p) {
    front_.exact = !p.autocast;
    cuts_ = cuts_of(p, front_.exact);
    front_.cuts = cuts_.size() - 2;
    cuts_.push_back(p.calls + 1);
    for (std::size_t i = 0; i < cuts_.size(); ++i) at_.emplace(cuts_[i], i);
    states_.resize(cuts_.size());
  }

  PlacementFront front() {
    state_of(0, {});
    for (std::size_t i = 0; i + 1 < cuts_.size(); ++i)
      for (std::size_t s = 0; s < states_[i].size(); ++s) open(i, s);
    for (State& s : states_.back()) s.points.push_back({});
    for (std::size_t i = cuts_.size() - 1; i-- > 0;)
      for (State& s : states_[i]) solve(s);
    const auto& points = states_[0][0].points;
    for (std::size_t k = 0; k < points.size(); ++k)
      if (k == 0 || points[k].work < front_.placements.back().work) read(k);
    std::reverse(front_.placements.begin(), front_.placements.end());
    // What lives outside forward and backward bounds every peak from below.
    auto& all = front_.placements;
    while (all.size() > 1 && all[all.size() - 2].peak <= p_.other_peak) all.pop_back();
    for (Placement& one : all) one.peak = std::max(one.peak, p_.other_peak);
    return std::move(front_);
  }

 private:
  /// The next part, and what comes after it.
  struct Choice {
    std::size_t cut = 0, state = 0;
    std::int64_t forward = 0, backward = 0, held = 0, late = 0, work = 0;
    bool segment = false;
  };
  struct Point {
    std::int64_t forward = 0, backward = 0, work = 0;
    std::uint32_t choice = 0, next = 0;  ///< of the state's choices; of the next state's points
    std::int64_t need() const { return std::max(forward, backward); }
  };
  struct State {
    Blocks shared;
    std::vector<Choice> choices;
    std::vector<Point> points;  ///< need ascending, work descending
  };

  std::size_t state_of(std::size_t cut, Blocks shared) {
    for (std::size_t s = 0; s < states_[cut].size(); ++s)
      if (states_[cut][s].shared == shared) return s;
    states_[cut].push_back({std::move(shared), {}, {}});
    return states_[cut].size() - 1;
  }

  void add(std::size_t cut, std::size_t state, Part part, bool segment) {
    const std::size_t to = at_.at(part.end);
    // Too many ways to share: what is held counts as held alone from here on, which is never too little.
    if (states_[to].size() >= most_states && !known(to, part.shared)) {
      for (const std::int32_t b : part.shared) part.held += p_.blocks[static_cast<std::size_t>(b)].bytes;
      part.shared.clear();
      front_.exact = false;
    }
    const std::size_t next = state_of(to, std::move(part.shared));
    // Where nothing is late one figure will do.
    if (!walker_.any_late()) part.forward = part.backward = std::max(part.forward, part.backward);
    states_[cut][state].choices.push_back(
        {to, next, part.forward, part.backward, part.held, part.late, part.work, segment});
  }

  bool known(std::size_t cut, const Blocks& shared) const {
    return std::any_of(states_[cut].begin(), states_[cut].end(), [&](const State& s) { return s.shared == shared; });
  }

  void open(std::size_t cut, std::size_t state) {
    const Blocks shared = states_[cut][state].shared;
    add(cut, state, walker_.keep(cuts_[cut], cuts_[cut + 1], shared), false);
    if (cuts_[cut] >= p_.calls) return;
    walker_.checkpoint(cuts_[cut], {cuts_.data(), cuts_.size() - 1}, shared, [&](Part part) {
      if (!allowed_ || allowed_(cuts_[cut], part.end)) add(cut, state, std::move(part), true);
    });
  }

  void solve(State& s) {
    std::vector<Point> merged;
    for (std::uint32_t k = 0; k < s.choices.size(); ++k) {
      const Choice& c = s.choices[k];
      const std::vector<Point>& after = states_[c.cut][c.state].points;
      // Nothing that it gives can beat what there is.
      const Point least{.forward = c.forward, .backward = c.backward, .work = c.work};
      if (beaten(least, s.points)) continue;
      merged.clear();
      const auto keep = [&](const Point& p) {
        if (!merged.empty() && merged.back().need() == p.need() && beaten(merged.back(), {p})) merged.pop_back();
        if (!beaten(p, merged)) merged.push_back(p);
      };
      std::size_t i = 0, j = 0;
      while (i < s.points.size() || j < after.size()) {
        Point there;
        if (j < after.size())
          there = {std::max(c.forward, c.held + after[j].forward),
                   std::max(c.backward, c.held + c.late + after[j].backward), c.work + after[j].work, k,
                   static_cast<std::uint32_t>(j)};
        if (j == after.size() || (i < s.points.size() && s.points[i].need() <= there.need())) {
          keep(s.points[i++]);
        } else {
          keep(there);
          ++j;
        }
      }
      std::swap(s.points, merged);
      if (s.points.size() > 2 * most_points) thin(s.points);
    }
    if (s.points.size() > most_points) thin(s.points);
  }

  /// One of `by` is no worse in anything. A part that autocast's cache still holds adds to backward only, so a point
  /// that is worse in both figures together may yet win in one of them.
  bool beaten(const Point& p, const std::vector<Point>& by) const {
    if (!walker_.any_late()) return !by.empty() && by.back().work <= p.work && by.back().need() <= p.need();
    return std::any_of(by.begin(), by.end(), [&](const Point& q) {
      return q.work <= p.work && q.forward <= p.forward && q.backward <= p.backward;
    });
  }

  /// Every point stays a placement that can be had; the ends stay.
  void thin(std::vector<Point>& points) {
    front_.exact = false;
    std::vector<Point> few;
    for (std::size_t k = 0; k < most_points; ++k) few.push_back(points[k * (points.size() - 1) / (most_points - 1)]);
    points = std::move(few);
  }

  void read(std::size_t point) {
    Placement out;
    std::size_t cut = 0, state = 0;
    out.peak = states_[0][0].points[point].need();
    out.work = states_[0][0].points[point].work;
    while (cut + 1 < cuts_.size()) {
      const State& s = states_[cut][state];
      const Point& p = s.points[point];
      const Choice& c = s.choices[p.choice];
      if (c.segment) out.segments.push_back({.begin = cuts_[cut], .end = cuts_[c.cut]});
      cut = c.cut;
      state = c.state;
      point = p.next;
    }
    front_.placements.push_back(std::move(out));
  }

  const StepProfile& p_;
  const SegmentFilter& allowed_;
  Walker walker_;
  std::vector<std::size_t> cuts_;
  std::map<std::size_t, std::size_t> at_;  ///< index of a cut
  std::vector<std::vector<State>> states_;
  PlacementFront front_;
};

}  // namespace

PlacementFront place_checkpoints(const StepProfile& profile, const SegmentFilter& allowed) {
  return Table(profile, allowed).front();
}

std::int64_t recomputed_work(const StepProfile& p, const std::vector<SegmentRange>& segments) {
  std::int64_t work = 0;
  for (const SegmentRange& r : segments) {
    const auto saves = [&](std::size_t c) {
      return std::any_of(p.nodes.begin() + p.call[c].node, p.nodes.begin() + p.call[c + 1].node,
                         [](const auto& n) { return n.saves_begin != n.saves_end; });
    };
    std::size_t stop = r.end;
    while (stop > r.begin && !saves(stop - 1)) --stop;
    if (stop == r.begin) continue;
    for (std::size_t c = r.begin; c + 1 < stop; ++c) work += p.call[c].work;
    work += rerun_work + p.call[stop - 1].work_as_last;
  }
  return work;
}

bool can_be_segment(const StepProfile& profile, std::size_t begin, std::size_t end) {
  bool found = false;
  const std::array<std::size_t, 1> ends{end};
  Walker(profile).checkpoint(begin, ends, {}, [&](const Part&) { found = true; });
  return found;
}

}  // namespace headroom
