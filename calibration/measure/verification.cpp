#include "calibration/measure/verification.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "calibration/measure/make_job.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/plan/cards.h"
#include "estimator/plan/shaped_programs.h"

namespace headroom {
namespace {

/// "2.11" of "2.11.0+cu130".
std::string version_of(const std::string& torch) {
  const auto parts = split(torch, '.');
  return parts.size() < 2 ? torch : std::string(parts[0]) + "." + std::string(parts[1]);
}

Scenario on_card(Scenario s, const MeasuredDevice& device, Bytes cap) {
  s.device = card_of(device);
  s.torch_version = version_of(device.torch);
  if (cap.count() > 0 && s.device.total_bytes.count() > 0)
    s.alloc_conf +=
        std::string(s.alloc_conf.empty() ? "" : ",") + "per_process_memory_fraction:" +
        std::to_string(static_cast<double>(cap.count()) / static_cast<double>(s.device.total_bytes.count()));
  return s;
}

std::string text_of(bool alloc, std::int64_t bytes, std::initializer_list<std::string_view> places) {
  std::string out = (alloc ? "+" : "-") + std::to_string(bytes);
  for (const std::string_view s : places)
    if (!s.empty()) out += " " + std::string(s);
  return out;
}

std::vector<std::string> predicted_step(const Stages& s, int step) {
  const shadow::Trace& trace = *s.trace;
  const auto text = [&trace](std::int32_t i) {
    return i >= 0 ? std::string_view(trace.texts[static_cast<std::size_t>(i)]) : std::string_view();
  };
  std::vector<std::string> out;
  bool inside = false;
  for (const auto& e : trace.events) {
    using Kind = shadow::TraceEvent::Kind;
    if (e.kind == Kind::phase) inside = (e.phase == Phase::setup ? Parting::setup : e.index) == step;
    if (!inside || (e.kind != Kind::alloc && e.kind != Kind::free)) continue;
    const auto& b = trace.blocks[static_cast<std::size_t>(e.index)];
    out.push_back(text_of(e.kind == Kind::alloc, b.bytes.count(),
                          {text(b.op), text(b.name), text(b.site), s.programs[0]->module_path(b.module)}));
  }
  return out;
}

std::vector<std::string> measured_step(const Measurement& m, int step) {
  std::vector<std::string> out;
  for (const MeasuredEvent& e : m.events)
    if ((e.phase == Phase::setup ? Parting::setup : e.step) == step)
      out.push_back(text_of(e.alloc, e.bytes, {e.op, e.site, e.module}));
  return out;
}

std::optional<Parting> parting_of(const StepEvents& events) {
  const auto what = [](const std::string& line) { return line.substr(0, line.find(' ')); };
  for (std::size_t i = 0; i < std::max(events.predicted.size(), events.measured.size()); ++i) {
    const std::string p = i < events.predicted.size() ? events.predicted[i] : "",
                      m = i < events.measured.size() ? events.measured[i] : "";
    if (what(p) != what(m)) return Parting{.step = events.step, .event = i, .predicted = p, .measured = m};
  }
  return std::nullopt;
}

void compare_events(Verification& v, const Stages& stages) {
  int last = 0;
  for (const MeasuredPhase& p : v.measured.phases) last = std::max(last, p.step);
  const auto events = [&](int step) {
    return StepEvents{step, predicted_step(stages, step), measured_step(v.measured, step)};
  };
  v.last_step = events(last);
  for (int step = Parting::setup; step <= last && !v.parting; ++step) v.parting = parting_of(events(step));
}

bool within(Bytes estimated, Bytes margin, Bytes measured) {
  return estimated - margin <= measured && measured <= estimated + margin;
}

Job job_for(const Model& model, const Scenario& scenario, const VerifyOptions& options) {
  Job job = make_job(shaped_programs(model, scenario), scenario);
  job.memory = options.memory;
  job.history = options.history;
  return job;
}

/// The largest n >= 0 for which `holds` (it holds up to there and not above): in steps that double away from `near`,
/// then by halves.
template <class Holds>
std::int64_t largest(std::int64_t near, const Holds& holds) {
  constexpr std::int64_t unbounded = std::int64_t{1} << 30;
  std::int64_t low = near, high = near, step = 1;
  if (holds(near)) {
    for (high = near + 1; high < unbounded && holds(high); high = low + step) {
      low = high;
      step *= 2;
    }
  } else {
    for (low = near - 1; low > 0 && !holds(low); low = std::max<std::int64_t>(high - step, 0)) {
      high = low;
      step *= 2;
    }
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

Device card_of(const MeasuredDevice& m) {
  Device d;
  for (const Card& c : cards())
    if (c.name == m.name) d = c.device;
  if (d.name.empty() && m.compute_major > 0) {
    d.name = m.name;
    d.compute_major = m.compute_major;
    d.compute_minor = m.compute_minor;
  }
  if (m.sm_count > 0) d.sm_count = m.sm_count;
  if (m.total.count() > 0) d.total_bytes = m.total;
  return d;
}

bool Verification::holds() const {
  const bool out_of_memory = measured.outcome == Measurement::Outcome::out_of_memory;
  if (!ran() || out_of_memory != estimate.out_of_memory) return false;
  if (out_of_memory) return true;
  const auto device = measured.device_peak();
  return within(estimate.peak_allocated, estimate.margin_allocated, measured.allocated_peak()) &&
         within(estimate.peak_reserved, estimate.margin_reserved, measured.reserved_peak()) &&
         (!device || within(estimate.peak_device, estimate.margin_device, *device));
}

Verification verify(Estimator& estimator, const Scenario& scenario, const VerifyOptions& options) {
  Verification v;
  v.measured = measure(options.runner, job_for(estimator.model(), scenario, options));
  if (!v.ran()) return v;
  Stages stages;
  v.estimate = estimator.estimate(on_card(scenario, v.measured.device, options.memory), &stages);
  if (options.history) compare_events(v, stages);
  return v;
}

LargestBatch verify_largest_batch(Estimator& estimator, const Scenario& scenario, const VerifyOptions& options) {
  LargestBatch out;
  MeasuredDevice device;
  const auto runs = [&](std::int64_t batch) {
    for (const auto& [known, ran] : out.runs)
      if (known == batch) return ran;
    Scenario s = scenario;
    s.batch = batch;
    VerifyOptions plain = options;
    plain.history = false;
    const Measurement m = measure(options.runner, job_for(estimator.model(), s, plain));
    if (m.outcome == Measurement::Outcome::failed) throw environment_error(m.message);
    device = m.device;
    const bool ran = m.outcome == Measurement::Outcome::completed;
    out.runs.emplace_back(batch, ran);
    return ran;
  };
  // One run tells what card there is.
  const bool any = runs(1);
  const auto fits = [&](std::int64_t batch) {
    Scenario s = on_card(scenario, device, options.memory);
    s.batch = batch;
    return !estimator.estimate(s).out_of_memory;
  };
  out.predicted = largest(1, fits);
  out.measured = any ? largest(std::max<std::int64_t>(out.predicted, 1), runs) : 0;
  return out;
}

}  // namespace headroom
