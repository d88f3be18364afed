#include "estimator/plan/replay_answer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "estimator/allocate/async.h"

namespace headroom {
namespace {

std::string site_of(const History& history, std::uint32_t entry) {
  return entry < history.entries.size() ? history.call_site(history.entries[entry].context) : std::string();
}

ReplayedSetting setting(const History& history, std::string alloc_conf, ReplayResult result, bool as_recorded) {
  ReplayedSetting s{.alloc_conf = std::move(alloc_conf), .as_recorded = as_recorded, .result = std::move(result)};
  if (s.result.at_peak_allocated.allocated > 0) s.peak_site = site_of(history, s.result.at_peak_allocated.entry);
  if (!s.result.ooms.empty()) s.refused_site = site_of(history, s.result.ooms.front().entry);
  return s;
}

/// cudaMallocAsync's reserved is a model with a bound; everything else has to be equal.
bool passed(const ReplayCheck& check, AllocatorBackend backend) {
  if (backend == AllocatorBackend::native) return check.all_equal();
  if (check.oom_events != check.oom_events_recorded) return false;
  return std::all_of(check.peaks.begin(), check.peaks.end(), [](const CheckedFigure& f) {
    const double bound = f.name == "reserved" ? AsyncAllocator::reserved_bound : 0;
    return std::abs(static_cast<double>(f.replayed - f.recorded)) <= bound * static_cast<double>(f.recorded);
  });
}

}  // namespace

std::optional<bool> ReplayAnswer::fits() const {
  if (!memory) return std::nullopt;
  return std::any_of(settings.begin(), settings.end(), [](const auto& s) { return s.fits.value_or(false); });
}

ReplayAnswer answer_replay(const History& history, const ReplayQuestion& question) {
  const ReplayScript script = make_script(history, question.torch.value_or(TorchVersion{}));
  ReplayAnswer a{.file = history.file,
                 .device = history.device,
                 .torch_version = history.torch_version,
                 .alloc_conf = history.alloc_conf,
                 .memory_fraction = history.memory_fraction,
                 .device_total = history.device_total,
                 .events = static_cast<std::int64_t>(history.entries.size()),
                 .allocations = std::count_if(history.entries.begin(), history.entries.end(),
                                              [](const auto& e) { return e.action == Action::alloc; }),
                 .memory = question.memory};
  for (const SegmentRecord& s : script.initial) a.initial += Bytes(s.size);
  if (question.check) {
    CheckedReplay checked = check_replay(history, script);
    a.check_passed = passed(checked.check, script.options.backend);
    a.check = std::move(checked.check);
    a.settings.push_back(setting(history, history.alloc_conf, std::move(checked.result), true));
  } else {
    a.settings.push_back(setting(history, history.alloc_conf, replay(script, recorded_config(script)), true));
  }
  std::vector<std::string> confs = question.alloc_confs;
  if (confs.empty() && question.memory) confs.push_back(history.alloc_conf);
  for (const std::string& conf : confs) {
    const AllocatorOptions options = parse_allocator_options(conf, question.torch.value_or(script.options.torch));
    a.settings.push_back(setting(history, conf, replay(script, other_config(script, options, question.memory)), false));
    if (question.memory) a.settings.back().fits = a.settings.back().result.oom_events == 0;
  }
  a.leaks = find_leaks(history, script);
  for (const ReplayedSetting& s : a.settings)
    for (const Diagnostic& d : s.result.diagnostics)
      if (std::none_of(a.diagnostics.begin(), a.diagnostics.end(),
                       [&](const Diagnostic& known) { return known.code == d.code; }))
        a.diagnostics.push_back(d);
  return a;
}

std::vector<ReplayAnswer> answer_replay(const std::string& path, const ReplayQuestion& question) {
  const std::vector<History> histories = read_histories(path);
  std::vector<ReplayAnswer> answers;
  for (const History& history : histories)
    if (!history.entries.empty()) answers.push_back(answer_replay(history, question));
  // Devices that only hold segments are left out, unless there is nothing else: then the error says what is missing.
  if (answers.empty()) answers.push_back(answer_replay(histories.front(), question));
  return answers;
}

}  // namespace headroom
