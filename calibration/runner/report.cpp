#include "calibration/runner/report.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

namespace headroom::runner {
namespace {

using Json = nlohmann::ordered_json;

void write(const Json& line) {
  std::cout << line.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
}

std::string_view name_of(MemoryEvent::Kind kind) {
  switch (kind) {
    case MemoryEvent::Kind::alloc:
      return "alloc";
    case MemoryEvent::Kind::free:
      return "free";
    case MemoryEvent::Kind::segment_alloc:
      return "segment_alloc";
    case MemoryEvent::Kind::segment_free:
      return "segment_free";
    case MemoryEvent::Kind::out_of_memory:
      return "oom";
  }
  return "";
}

Json list_of(const Dims& d) {
  Json j = Json::array();
  for (const auto n : d) j.push_back(n);
  return j;
}

/// JSON has no NaN and no infinity.
Json number(double d) { return std::isfinite(d) ? Json(d) : Json(std::to_string(d)); }

}  // namespace

void Report::start(const DeviceInfo& i) {
  write({{"event", "start"},
         {"device", i.name},
         {"torch", i.torch},
         {"cuda", i.cuda},
         {"cudnn", i.cudnn},
         {"driver", i.driver},
         {"total_bytes", i.total_bytes},
         {"context_bytes", i.context_bytes},
         {"others_bytes", i.others_bytes},
         {"sm_count", i.sm_count},
         {"compute_capability", std::to_string(i.compute_major) + "." + std::to_string(i.compute_minor)}});
}

void Report::phase_ended(const Statistics& s, std::optional<std::int64_t> process_bytes, double seconds) {
  peaks_.allocated_peak = std::max(peaks_.allocated_peak, s.allocated_peak);
  peaks_.reserved_peak = std::max(peaks_.reserved_peak, s.reserved_peak);
  process_bytes_ = std::max(process_bytes_, process_bytes.value_or(0));
  seconds_ += seconds;
  Json line{{"event", "phase"},
            {"step", place.step},
            {"phase", headroom::name_of(place.phase)},
            {"allocated_bytes", s.allocated},
            {"allocated_peak_bytes", s.allocated_peak},
            {"reserved_bytes", s.reserved},
            {"reserved_peak_bytes", s.reserved_peak}};
  if (process_bytes) line["device_bytes"] = *process_bytes;
  line["seconds"] = seconds;
  write(line);
}

void Report::loss(int step, double value) { write({{"event", "loss"}, {"step", step}, {"value", number(value)}}); }

void Report::gradients(int step, std::int64_t tensors, std::int64_t not_finite) {
  write({{"event", "gradients"}, {"step", step}, {"tensors", tensors}, {"not_finite", not_finite}});
}

void Report::shape_differs(const Dims& expected, const Dims& got, std::string_view value) {
  ++shapes_wrong_;
  write({{"event", "shape"},
         {"value", value},
         {"op", place.op},
         {"site", place.site},
         {"expected", list_of(expected)},
         {"got", list_of(got)}});
}

void Report::convolution(std::size_t index, const std::array<std::optional<std::int64_t>, 3>& workspaces) {
  Json bytes = Json::array();
  for (const auto& w : workspaces) bytes.push_back(w ? Json(*w) : Json());
  write({{"event", "convolution"}, {"index", index}, {"workspaces", bytes}});
}

void Report::memory(const MemoryEvent& e, std::string_view node) {
  events_.push_back({e, place.phase, place.step, std::string(place.op.empty() ? node : place.op),
                     std::string(place.site), std::string(place.module)});
}

void Report::refused(std::string node) {
  refused_node_ = std::move(node);
  if (place.op.empty()) place.op = refused_node_;
}

void Report::end(std::string_view outcome, std::string_view message) {
  for (const Event& e : events_)
    write({{"event", "memory"},
           {"action", name_of(e.memory.kind)},
           {"bytes", e.memory.bytes},
           {"address", e.memory.address},
           {"step", e.step},
           {"phase", headroom::name_of(e.phase)},
           {"op", e.op},
           {"site", e.site},
           {"module", e.module}});
  Json line{{"event", "end"},
            {"outcome", outcome},
            {"allocated_bytes", peaks_.allocated_peak},
            {"reserved_bytes", peaks_.reserved_peak}};
  if (process_bytes_ > 0) line["device_bytes"] = process_bytes_;
  line["seconds"] = seconds_;
  line["shapes_wrong"] = shapes_wrong_;
  if (!message.empty()) {
    line["message"] = message;
    line["op"] = place.op;
    line["site"] = place.site;
    line["module"] = place.module;
  }
  write(line);
}

}  // namespace headroom::runner
