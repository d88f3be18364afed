#include "estimator/plan/checkpoint/placement.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "estimator/plan/checkpoint/cuts.h"
#include "estimator/plan/checkpoint/part_walker.h"

namespace headroom {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max(), nothing = -(most / 4);
constexpr std::size_t most_pairs = 30'000;  ///< of cuts with a segment between them
constexpr std::size_t most_states = 24;     ///< of one cut
/// Of one state's front: so many that the table's work and its size stay bounded.
constexpr std::size_t least_points = 256, points_times_choices = 32 << 20, points_times_states = 4 << 20;

constexpr auto none = std::numeric_limits<std::uint32_t>::max();

/// What a suffix of the forward pass needs under the least work.
struct Point {
  std::int64_t need = 0;      ///< most that lives, besides what the prefix holds
  std::int64_t backward = 0;  ///< of that in backward, where the prefix may hold more: its late blocks
  std::int64_t work = 0;
  std::int64_t least_work = 0;              ///< of those that need no more, and of this one
  std::uint32_t segment = none, point = 0;  ///< the first segment, a choice, and the point behind it
};

/// Points that came by, in the order of their needs. No point's backward lies below its need by more than `late`.
class Staircase {
 public:
  explicit Staircase(std::int64_t late) : late_(late) {}

  void clear() { steps_.clear(); }
  /// None of them is as good as `p` in everything.
  bool improved_by(const Point& p) const {
    const std::size_t above = first_above(p.backward);
    return above == 0 || steps_[above - 1].work > p.work;
  }
  void add(const Point& p) {
    // What is yet to come needs as much in backward.
    if (p.backward == p.need - late_) steps_.clear();
    std::size_t from = first_above(p.backward), to = from;
    while (to < steps_.size() && steps_[to].work >= p.work) ++to;
    if (from > 0 && steps_[from - 1].backward == p.backward) --from;
    steps_.erase(at(from), at(to));
    steps_.insert(at(from), {p.backward, p.work});
  }

 private:
  struct Step {
    std::int64_t backward, work;
  };
  std::vector<Step>::iterator at(std::size_t i) { return steps_.begin() + static_cast<std::ptrdiff_t>(i); }
  std::size_t first_above(std::int64_t backward) const {
    if (steps_.empty() || steps_.back().backward <= backward) return steps_.size();
    const auto above = std::upper_bound(steps_.begin(), steps_.end(), backward,
                                        [](std::int64_t b, const Step& s) { return b < s.backward; });
    return static_cast<std::size_t>(above - steps_.begin());
  }

  std::int64_t late_;
  std::vector<Step> steps_;  ///< backward ascending, work descending
};

class Table {
 public:
  Table(const StepProfile& p, const SegmentFilter& allowed, const SegmentFilter& selective)
      : p_(p), allowed_(allowed), selective_(selective), walker_(p), cuts_(cuts_of(p, most_pairs)) {
    front_.exact = !p.autocast && cuts_.size() == p.calls + 1;
    front_.cuts = cuts_.size() - 2;
    cuts_.push_back(p.calls + 1);
    at_.resize(p.calls + 2);
    for (std::size_t i = 0; i < cuts_.size(); ++i) at_[cuts_[i]] = i;
    states_.resize(cuts_.size());
  }

  PlacementFront front() {
    state_of(0, {});
    for (std::size_t i = 0; i + 1 < cuts_.size(); ++i)
      for (std::size_t s = 0; s < states_[i].size(); ++s) open(i, s);
    std::size_t states = 0;
    for (const auto& of_cut : states_) states += of_cut.size();
    most_points_ =
        std::max(least_points, std::min(points_times_choices / choices_.size(), points_times_states / states));
    for (State& s : states_.back()) s.points.push_back({});
    for (std::size_t i = cuts_.size() - 1; i-- > 0;)
      for (State& s : states_[i]) solve(s, walker_.late_before(cuts_[i]));
    for (const Point& p : states_[0][0].points)
      if (front_.placements.empty() || p.work < front_.placements.back().work) read(p);
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
    std::size_t begin = 0, cut = 0, state = 0;  ///< the part's first call; where it ends
    std::int64_t forward = 0, backward = 0, held = 0, late = 0, work = 0;
    bool segment = false;
    std::int8_t keep = -1;  ///< of a segment: index into the profile's keeps
  };
  struct State {
    Blocks shared;
    std::uint32_t first = 0, last = 0;  ///< its choices
    std::vector<Point> points;          ///< need ascending; none is as good as another in everything
  };

  std::size_t state_of(std::size_t cut, Blocks shared) {
    for (std::size_t s = 0; s < states_[cut].size(); ++s)
      if (states_[cut][s].shared == shared) return s;
    states_[cut].push_back({.shared = std::move(shared)});
    return states_[cut].size() - 1;
  }

  void add(std::size_t cut, Part part, bool segment, std::int8_t keep = -1) {
    const std::size_t to = at_[part.end];
    // Too many ways to share: what is held counts as held alone from here on, which is never too little.
    if (states_[to].size() >= most_states && !known(to, part.shared)) {
      for (const std::int32_t b : part.shared) part.held += p_.blocks[static_cast<std::size_t>(b)].bytes;
      part.shared.clear();
      front_.exact = false;
    }
    const std::size_t next = state_of(to, std::move(part.shared));
    choices_.push_back(
        {cuts_[cut], to, next, part.forward, part.backward, part.held, part.late, part.work, segment, keep});
  }

  bool known(std::size_t cut, const Blocks& shared) const {
    return std::any_of(states_[cut].begin(), states_[cut].end(), [&](const State& s) { return s.shared == shared; });
  }

  void open(std::size_t cut, std::size_t state) {
    const Blocks shared = states_[cut][state].shared;
    states_[cut][state].first = static_cast<std::uint32_t>(choices_.size());
    add(cut, walker_.keep(cuts_[cut], cuts_[cut + 1], shared), false);
    std::vector<std::size_t> ends, selective;
    for (std::size_t i = cut + 1; i + 1 < cuts_.size(); ++i) {
      if (!allowed_ || allowed_(cuts_[cut], cuts_[i])) ends.push_back(cuts_[i]);
      if (selective_ && selective_(cuts_[cut], cuts_[i])) selective.push_back(cuts_[i]);
      if (p_.call[cuts_[i]].level < p_.call[cuts_[cut]].level) break;
    }
    if (!ends.empty())
      for (Part& part : walker_.checkpoint(cuts_[cut], ends, shared)) add(cut, std::move(part), true);
    if (!selective.empty())
      for (std::size_t k = 0; k < p_.keeps.size(); ++k)
        for (Part& part : walker_.checkpoint(cuts_[cut], selective, shared, k))
          add(cut, std::move(part), true, static_cast<std::int8_t>(k));
    states_[cut][state].last = static_cast<std::uint32_t>(choices_.size());
  }

  /// `q` behind the part that `c` is. `late`: the most that the prefix in front of them holds that counts in backward
  /// only; what can never decide is raised to what does, so that fewer points differ.
  static Point behind(const Choice& c, const Point& q, std::int64_t late) {
    const std::int64_t backward = std::max(c.backward, c.held + c.late + q.backward);
    const std::int64_t need = std::max({c.forward, backward, c.held + q.need});
    return {need, std::max(backward, need - late), c.work + q.work, 0, q.segment, q.point};
  }

  static std::size_t first_of_need(const std::vector<Point>& points, std::int64_t need) {
    const auto at = std::partition_point(points.begin(), points.end(), [&](const Point& p) { return p.need < need; });
    return static_cast<std::size_t>(at - points.begin());
  }
  /// The one of the least work of those below `need` is there or after it: work descends from any point to those that
  /// need more by over `late`.
  static std::size_t least_work_below(const std::vector<Point>& points, std::int64_t need, std::int64_t late) {
    const std::size_t end = first_of_need(points, need);
    return end == 0 ? 0 : first_of_need(points, points[end - 1].need - late);
  }

  static void least_works(std::vector<Point>& points, std::size_t from) {
    std::int64_t least = from == 0 ? most : points[from - 1].least_work;
    for (; from < points.size(); ++from) points[from].least_work = least = std::min(least, points[from].work);
  }

  void begin_with(Point& p, std::uint32_t choice, std::size_t point) const {
    if (!choices_[choice].segment) return;
    p.segment = choice;
    p.point = static_cast<std::uint32_t>(point);
  }

  /// The points after a choice, [first, last), that may be better than the state's own. Of equals the newer counts,
  /// whose first segment is longer.
  std::pair<std::size_t, std::size_t> window(std::vector<Point>& own, std::uint32_t k, std::int64_t late) const {
    const Choice& c = choices_[k];
    const std::vector<Point>& after = states_[c.cut][c.state].points;
    const Point least = behind(c, {.need = nothing, .backward = nothing}, late);
    std::size_t last = after.size();
    const auto enough =
        std::partition_point(own.begin(), own.end(), [&](const Point& p) { return p.least_work > c.work; });
    if (enough != own.end()) last = first_of_need(after, enough->need + late - c.held);
    // Of those that need no more than the part itself does, one.
    std::size_t first =
        least_work_below(after, least.backward - c.held - c.late + 1, walker_.late_before(cuts_[c.cut]));
    const auto need = [&](std::size_t j) { return std::max(least.need, c.held + after[j].need) - late; };
    const auto beaten = [&](std::size_t j, std::size_t rivals) {
      const std::int64_t work = c.work + after[j].work;
      if (rivals == 0 || own[rivals - 1].least_work > work) return false;
      Point& best = own[rivals - 1];
      if (late == 0 && best.need == need(j) && best.work == work) begin_with(best, k, j);
      return true;
    };
    std::size_t rivals = first < last ? first_of_need(own, need(first)) : 0;
    for (; first < last; ++first) {
      while (rivals < own.size() && own[rivals].need <= need(first)) ++rivals;
      if (!beaten(first, rivals)) break;
    }
    rivals = first < last ? first_of_need(own, need(last - 1) + 1) : 0;
    for (; first < last; --last) {
      while (rivals > 0 && own[rivals - 1].need > need(last - 1)) --rivals;
      if (!beaten(last - 1, rivals)) break;
    }
    return {first, last};
  }

  /// Puts the choices' points together.
  void solve(State& s, std::int64_t late) {
    std::vector<Point>& own = s.points;
    std::vector<Point> news, merged;
    Staircase seen(late);
    for (std::uint32_t k = s.first; k < s.last; ++k) {
      const Choice& c = choices_[k];
      const std::vector<Point>& after = states_[c.cut][c.state].points;
      const auto [first, last] = window(own, k, late);
      if (first >= last) continue;
      news.clear();
      std::int64_t least_work = most;
      for (std::size_t j = first; j < last; ++j) {
        news.push_back(behind(c, after[j], late));
        begin_with(news.back(), k, j);
        least_work = std::min(least_work, news.back().work);
      }
      const auto needs_less = [](const Point& a, const Point& b) { return a.need < b.need; };
      if (c.late > 0) std::sort(news.begin(), news.end(), needs_less);
      // Own points in front of `begin` and from `end` on stay as they are.
      const std::size_t begin = least_work_below(own, news.front().need - late + 1, late);
      std::size_t end = first_of_need(own, news.back().need + late);
      while (end < own.size() && own[end].work >= least_work) ++end;
      seen.clear();
      merged.clear();
      const auto keep = [&](const Point& p) {
        const bool replaces = !merged.empty() && merged.back().need == p.need && merged.back().backward >= p.backward &&
                              merged.back().work >= p.work;
        if (!replaces && !seen.improved_by(p)) return;
        seen.add(p);
        if (replaces) merged.pop_back();
        merged.push_back(p);
      };
      std::size_t i = begin;
      for (const Point& p : news) {
        while (i < end && own[i].need <= p.need) keep(own[i++]);
        keep(p);
      }
      while (i < end) keep(own[i++]);
      const auto at = [&](std::size_t place) { return own.begin() + static_cast<std::ptrdiff_t>(place); };
      own.insert(own.erase(at(begin), at(end)), merged.begin(), merged.end());
      least_works(own, begin);
      if (own.size() > 2 * most_points_) thin(own);
    }
    if (own.size() > most_points_) thin(own);
  }

  /// Every point stays a placement that can be had; the ends stay.
  void thin(std::vector<Point>& points) {
    front_.exact = false;
    std::vector<Point> few;
    for (std::size_t k = 0; k < most_points_; ++k) few.push_back(points[k * (points.size() - 1) / (most_points_ - 1)]);
    points = std::move(few);
    least_works(points, 0);
  }

  void read(const Point& first) {
    Placement out{.peak = first.need, .work = first.work, .segments = {}};
    for (const Point* p = &first; p->segment != none;) {
      const Choice& c = choices_[p->segment];
      out.segments.push_back({.begin = c.begin, .end = cuts_[c.cut]});
      if (c.keep >= 0) out.segments.back().save = p_.keeps[static_cast<std::size_t>(c.keep)];
      p = &states_[c.cut][c.state].points[p->point];
    }
    front_.placements.push_back(std::move(out));
  }

  const StepProfile& p_;
  const SegmentFilter &allowed_, &selective_;
  PartWalker walker_;
  std::vector<std::size_t> cuts_;
  std::vector<std::size_t> at_;             ///< by call: index of its cut
  std::vector<std::vector<State>> states_;  ///< by cut
  std::vector<Choice> choices_;
  std::size_t most_points_ = least_points;
  PlacementFront front_;
};

}  // namespace

PlacementFront place_checkpoints(const StepProfile& profile, const SegmentFilter& allowed,
                                 const SegmentFilter& selective) {
  return Table(profile, allowed, selective).front();
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
    const auto keep = std::find(p.keeps.begin(), p.keeps.end(), r.save);
    const auto again = [&](std::size_t c, std::int64_t of_call) {
      const bool kept = keep != p.keeps.end() && (p.call[c].kept >> (keep - p.keeps.begin()) & 1) != 0;
      return kept ? std::min(of_call, p.call[c].work_beside) : of_call;
    };
    for (std::size_t c = r.begin; c + 1 < stop; ++c) work += again(c, p.call[c].work);
    work += rerun_work + again(stop - 1, p.call[stop - 1].work_as_last);
  }
  return work;
}

bool can_be_segment(const StepProfile& profile, std::size_t begin, std::size_t end, std::optional<std::size_t> keep) {
  const std::array<std::size_t, 1> ends{end};
  return !PartWalker(profile).checkpoint(begin, ends, {}, keep).empty();
}

}  // namespace headroom
