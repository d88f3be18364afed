#include <algorithm>
#include <nlohmann/json.hpp>

#include "estimator/report/json_parts.h"
#include "estimator/report/replay_report.h"

namespace headroom::report {
namespace {

using nlohmann::ordered_json;

/// What one setting made of the history.
ordered_json figures_json(const ReplayedSetting& s) {
  const ReplayResult& r = s.result;
  const MemoryStats& m = r.stats;
  ordered_json ooms = ordered_json::array();
  for (const ReplayOom& o : r.ooms)
    ooms.push_back({{"event", o.entry},
                    {"requested_bytes", o.oom.requested.count()},
                    {"segment_bytes", o.oom.segment.count()},
                    {"recorded", o.recorded},
                    {"text", o.oom.text}});
  ordered_json j = {
      {"alloc_conf", s.alloc_conf},
      {"as_recorded", s.as_recorded},
      {"peak",
       {{"allocated_bytes", m.allocated_bytes.all.peak},
        {"reserved_bytes", m.reserved_bytes.all.peak},
        {"active_bytes", m.active_bytes.all.peak},
        {"requested_bytes", m.requested_bytes.all.peak},
        {"inactive_split_bytes", m.inactive_split_bytes.all.peak},
        {"at", {{"event", r.at_peak_allocated.entry}, {"call_site", s.peak_site}}},
        {"reserved_at", {{"event", r.at_peak_reserved.entry}, {"allocated_bytes", r.at_peak_reserved.allocated}}}}},
      {"end",
       {{"allocated_bytes", m.allocated_bytes.all.current},
        {"reserved_bytes", m.reserved_bytes.all.current},
        {"active_bytes", m.active_bytes.all.current},
        {"requested_bytes", m.requested_bytes.all.current},
        {"inactive_split_bytes", m.inactive_split_bytes.all.current}}},
      {"fragmentation", r.fragmentation()},
      {"fragmentation_bytes", r.at_peak_reserved.reserved - r.at_peak_reserved.allocated},
      {"retries", m.num_alloc_retries},
      {"device_allocs", m.num_device_alloc},
      {"device_frees", m.num_device_free},
      {"oom_events", r.oom_events},
      {"avoided_oom_events", r.avoided_ooms},
      {"ooms", ooms}};
  if (s.fits) j["fits"] = *s.fits;
  return j;
}

ordered_json check_json(const ReplayCheck& c, bool passed) {
  ordered_json peaks = ordered_json::object();
  for (const CheckedFigure& f : c.peaks)
    peaks[f.name] = {{"recorded_bytes", f.recorded}, {"replayed_bytes", f.replayed}};
  return {{"equal", passed},
          {"addresses", c.addresses},
          {"addresses_equal", c.addresses_equal},
          {"segment_events", c.segment_events},
          {"segment_events_equal", c.segment_events_equal},
          {"segments", c.segments},
          {"segments_equal", c.segments_equal},
          {"blocks", c.blocks},
          {"blocks_equal", c.blocks_equal},
          {"oom_events", c.oom_events},
          {"oom_events_recorded", c.oom_events_recorded},
          {"peaks", peaks},
          {"first_difference", c.first_difference}};
}

ordered_json answer_json(const ReplayAnswer& a) {
  ordered_json j = {{"file", a.file},     {"device", a.device},           {"torch_version", a.torch_version},
                    {"events", a.events}, {"allocations", a.allocations}, {"initial_bytes", a.initial.count()}};
  if (a.memory_fraction) j["memory_fraction"] = *a.memory_fraction;
  if (a.device_total) j["device_total_bytes"] = a.device_total->count();
  if (a.memory) j["memory_bytes"] = a.memory->count();
  j.update(figures_json(a.asked()));
  if (const auto fits = a.fits()) j["fits"] = *fits;
  if (a.check) j["check"] = check_json(*a.check, a.check_passed);
  j["settings"] = ordered_json::array();
  for (const ReplayedSetting& s : a.settings) j["settings"].push_back(figures_json(s));
  j["leaks"] = ordered_json::array();
  for (const LeakSite& l : a.leaks)
    j["leaks"].push_back({{"call_site", l.call_site},
                          {"bytes", l.bytes},
                          {"count", l.count},
                          {"bytes_each", l.bytes_each},
                          {"first", l.first},
                          {"last", l.last}});
  ordered_json event = ordered_json::array(), allocated = event, reserved = event;
  for (const ReplayPoint& p : a.asked().result.timeline) {
    event.push_back(p.entry);
    allocated.push_back(p.allocated);
    reserved.push_back(p.reserved);
  }
  j["timeline"] = {{"event", event}, {"allocated_bytes", allocated}, {"reserved_bytes", reserved}};
  j["diagnostics"] = diagnostics_json(a.diagnostics);
  return j;
}

}  // namespace

std::string replay_json(const std::vector<ReplayAnswer>& answers) {
  ordered_json j = json_head();
  if (answers.size() == 1) {
    j.update(answer_json(answers[0]));
    return json_text(j);
  }
  ordered_json peak = ordered_json::object(), check = peak, histories = ordered_json::array();
  for (const ReplayAnswer& a : answers) {
    histories.push_back(answer_json(a));
    const ordered_json& h = histories.back();
    for (const char* key : {"allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes"})
      peak[key] = std::max(peak.value(key, std::int64_t{0}), h["peak"][key].get<std::int64_t>());
    if (h.contains("fits")) j["fits"] = j.value("fits", true) && h["fits"].get<bool>();
    if (!h.contains("check")) continue;
    check["equal"] = check.value("equal", true) && a.check_passed;
    for (const auto& [key, value] : h["check"].items())
      if (value.is_number_integer()) check[key] = check.value(key, std::int64_t{0}) + value.get<std::int64_t>();
  }
  j["peak"] = peak;
  if (!check.empty()) j["check"] = check;
  j["histories"] = histories;
  return json_text(j);
}

}  // namespace headroom::report
