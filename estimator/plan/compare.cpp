#include "estimator/plan/compare.h"

#include <algorithm>
#include <unordered_map>

#include "estimator/base/text.h"

namespace headroom {
namespace {

std::string_view text_at(const shadow::Trace& t, std::int32_t i) {
  return i >= 0 ? std::string_view(t.texts[static_cast<std::size_t>(i)]) : std::string_view();
}

bool same(const ComparedEvent& a, const ComparedEvent& b) { return a.alloc == b.alloc && a.bytes == b.bytes; }

std::int64_t peak_of(const std::vector<ComparedEvent>& events) {
  std::int64_t now = 0, peak = 0;
  for (const auto& e : events) {
    now += e.alloc ? e.bytes : -e.bytes;
    peak = std::max(peak, now);
  }
  return peak;
}

/// Myers' greedy algorithm (An O(ND) Difference Algorithm, 1986), furthest points kept for the way back. Beyond
/// `most` edits the rest counts as different: two such traces have nothing to teach each other.
constexpr std::ptrdiff_t most = 6000;

void align(Comparison& c) {
  const auto& a = c.predicted;
  const auto& b = c.recorded;
  const auto n = static_cast<std::ptrdiff_t>(a.size()), m = static_cast<std::ptrdiff_t>(b.size());
  std::vector<std::vector<std::int32_t>> history;
  std::vector<std::int32_t> v(static_cast<std::size_t>(2 * (n + m) + 3), 0);
  const std::ptrdiff_t zero = n + m + 1;
  std::ptrdiff_t reached = -1;
  for (std::ptrdiff_t d = 0; d <= std::min(n + m, most) && reached < 0; ++d) {
    history.emplace_back(v.begin() + (zero - d), v.begin() + (zero + d + 1));
    for (std::ptrdiff_t k = -d; k <= d; k += 2) {
      const auto at = [&](std::ptrdiff_t q) -> std::int32_t& { return v[static_cast<std::size_t>(zero + q)]; };
      std::ptrdiff_t x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
      std::ptrdiff_t y = x - k;
      while (x < n && y < m && same(a[static_cast<std::size_t>(x)], b[static_cast<std::size_t>(y)])) {
        ++x;
        ++y;
      }
      at(k) = static_cast<std::int32_t>(x);
      if (x >= n && y >= m) {
        reached = d;
        break;
      }
    }
  }
  if (reached < 0) {
    c.differences.push_back({0, a.size(), 0, b.size()});
    return;
  }
  c.common = static_cast<std::size_t>((n + m - reached) / 2);
  // Way back: single edits, then neighbours joined.
  std::vector<Difference> edits;
  std::ptrdiff_t x = n, y = m;
  for (std::ptrdiff_t d = reached; d > 0; --d) {
    const auto& before = history[static_cast<std::size_t>(d)];  // furthest points of d-1 around the diagonal
    const auto at = [&](std::ptrdiff_t q) -> std::ptrdiff_t {
      const std::ptrdiff_t i = q + d;
      return i < 0 || i >= static_cast<std::ptrdiff_t>(before.size()) ? -1 : before[static_cast<std::size_t>(i)];
    };
    const std::ptrdiff_t k = x - y;
    const bool down = k == -d || (k != d && at(k - 1) < at(k + 1));
    const std::ptrdiff_t from = down ? k + 1 : k - 1;
    const std::ptrdiff_t px = at(from), py = px - from;
    if (down)
      edits.push_back({static_cast<std::size_t>(px), 0, static_cast<std::size_t>(py), 1});
    else
      edits.push_back({static_cast<std::size_t>(px), 1, static_cast<std::size_t>(py), 0});
    x = px;
    y = py;
  }
  std::reverse(edits.begin(), edits.end());
  for (const Difference& e : edits) {
    if (!c.differences.empty()) {
      Difference& last = c.differences.back();
      if (last.predicted_at + last.predicted_count == e.predicted_at &&
          last.recorded_at + last.recorded_count == e.recorded_at) {
        last.predicted_count += e.predicted_count;
        last.recorded_count += e.recorded_count;
        continue;
      }
    }
    c.differences.push_back(e);
  }
}

}  // namespace

std::vector<ComparedEvent> step_events(const shadow::Trace& trace, const Program& program, int step) {
  using Kind = shadow::TraceEvent::Kind;
  if (step < 0)
    for (const auto& e : trace.events)
      if (e.kind == Kind::phase) step = std::max(step, e.index);
  std::vector<ComparedEvent> out;
  bool inside = false;
  for (const auto& e : trace.events) {
    if (e.kind == Kind::phase) inside = e.phase != Phase::setup && e.index == step;
    if (!inside || (e.kind != Kind::alloc && e.kind != Kind::free)) continue;
    const auto& b = trace.blocks[static_cast<std::size_t>(e.index)];
    std::string site(text_at(trace, b.op));
    for (const std::string_view s : {text_at(trace, b.name), text_at(trace, b.site), program.module_path(b.module)})
      if (!s.empty()) site += (site.empty() ? "" : "  ") + std::string(s);
    site += "  #" + std::to_string(e.index);
    out.push_back({e.kind == Kind::alloc, b.bytes.count(), std::move(site)});
  }
  return out;
}

std::vector<ComparedEvent> recorded_events(const History& history) {
  std::vector<ComparedEvent> out;
  for (const TraceEntry& e : history.entries) {
    if (e.action != Action::alloc && e.action != Action::free_requested) continue;
    out.push_back({e.action == Action::alloc, e.size, history.call_site(e.context)});
  }
  return out;
}

Comparison compare(std::vector<ComparedEvent> predicted, std::vector<ComparedEvent> recorded) {
  Comparison c;
  c.predicted = std::move(predicted);
  c.recorded = std::move(recorded);
  c.predicted_peak = peak_of(c.predicted);
  c.recorded_peak = peak_of(c.recorded);
  align(c);
  const std::size_t longer = std::max(c.predicted.size(), c.recorded.size());
  c.share = longer == 0 ? 1 : static_cast<double>(c.common) / static_cast<double>(longer);
  return c;
}

std::string describe(const Comparison& c, std::size_t shown) {
  std::string out = "predicted " + std::to_string(c.predicted.size()) + " events, recorded " +
                    std::to_string(c.recorded.size()) + ", common " + std::to_string(c.common) + " = ";
  const auto hundredths = static_cast<std::int64_t>(c.share * 10000 + 0.5);
  out += std::to_string(hundredths / 100) + "." + (hundredths % 100 < 10 ? "0" : "") +
         std::to_string(hundredths % 100) + " %; peak of requested bytes " + std::to_string(c.predicted_peak) +
         " predicted, " + std::to_string(c.recorded_peak) + " recorded (" +
         std::to_string(c.predicted_peak - c.recorded_peak) + ")\n";
  const auto line = [](char side, std::size_t i, const ComparedEvent& e) {
    return std::string("    ") + side + " " + std::to_string(i) + "  " + (e.alloc ? "+" : "-") +
           std::to_string(e.bytes) + "  " + printable(e.site, 160) + "\n";
  };
  for (std::size_t k = 0; k < std::min(shown, c.differences.size()); ++k) {
    const Difference& d = c.differences[k];
    out += "difference " + std::to_string(k + 1) + " of " + std::to_string(c.differences.size()) + "\n";
    if (d.predicted_at > 0) out += line(' ', d.predicted_at - 1, c.predicted[d.predicted_at - 1]);
    for (std::size_t i = 0; i < std::min<std::size_t>(d.predicted_count, 12); ++i)
      out += line('p', d.predicted_at + i, c.predicted[d.predicted_at + i]);
    for (std::size_t i = 0; i < std::min<std::size_t>(d.recorded_count, 12); ++i)
      out += line('r', d.recorded_at + i, c.recorded[d.recorded_at + i]);
  }
  return out;
}

}  // namespace headroom
