#include "calibration/measure/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "estimator/base/text.h"

namespace headroom::report {
namespace {

using Json = nlohmann::ordered_json;

struct Figure {
  const char* name;
  Bytes estimated, margin;
  std::optional<Bytes> measured;
};

std::vector<Figure> figures(const Verification& v) {
  const Estimate& e = v.estimate;
  return {{"allocated", e.peak_allocated, e.margin_allocated, v.measured.allocated_peak()},
          {"reserved", e.peak_reserved, e.margin_reserved, v.measured.reserved_peak()},
          {"device", e.peak_device, e.margin_device, v.measured.device_peak()}};
}

std::string error_text(Bytes estimated, Bytes measured) {
  if (estimated == measured) return "exact";
  if (measured.count() == 0) return "";
  return fmt::format("{:+.3f} %",
                     (static_cast<double>(estimated.count()) / static_cast<double>(measured.count()) - 1) * 100);
}

std::string place(const Measurement& m) {
  std::string out = m.op;
  for (const std::string& s : {m.site, m.module})
    if (!s.empty()) out += (out.empty() ? "" : "  ") + s;
  return printable(out, 160);
}

/// The largest peaks of a phase over all steps.
template <class Phases>
Bytes peak_of(const Phases& phases, Phase phase, Bytes std::decay_t<decltype(*std::begin(phases))>::*figure) {
  Bytes peak;
  for (const auto& p : phases)
    if (p.phase == phase) peak = std::max(peak, p.*figure);
  return peak;
}

std::string verdict(const Verification& v) {
  const bool out_of_memory = v.measured.outcome == Measurement::Outcome::out_of_memory;
  if (!v.ran()) return v.measured.message;
  if (out_of_memory != v.estimate.out_of_memory)
    return out_of_memory ? "the run ended in OutOfMemoryError, which the estimate did not say"
                         : "the run went through, but the estimate says OutOfMemoryError";
  if (out_of_memory) return "both end in OutOfMemoryError";
  return v.holds() ? "within the margin" : "outside the margin";
}

Json json_of(const VerifiedRow& row) {
  const Verification& v = row.verification;
  Json j{{"name", row.name},
         {"outcome", v.measured.outcome == Measurement::Outcome::completed       ? "completed"
                     : v.measured.outcome == Measurement::Outcome::out_of_memory ? "out-of-memory"
                                                                                 : "failed"},
         {"holds", v.holds()}};
  if (!v.measured.message.empty()) {
    j["message"] = v.measured.message;
    j["at"] = place(v.measured);
  }
  if (!v.ran()) return j;
  const MeasuredDevice& d = v.measured.device;
  j["device"] = {{"name", d.name},
                 {"driver", d.driver},
                 {"torch", d.torch},
                 {"cuda", d.cuda},
                 {"cudnn", d.cudnn},
                 {"context_bytes", d.context.count()},
                 {"others_bytes", d.others.count()}};
  for (const Figure& f : figures(v)) {
    j["estimated"][std::string(f.name) + "_bytes"] = f.estimated.count();
    j["margin"][std::string(f.name) + "_bytes"] = f.margin.count();
    j["measured"][std::string(f.name) + "_bytes"] = f.measured ? Json(f.measured->count()) : Json();
  }
  for (const MeasuredPhase& p : v.measured.phases) {
    Json phase{{"step", p.step},
               {"phase", name_of(p.phase)},
               {"allocated_bytes", p.allocated_peak.count()},
               {"reserved_bytes", p.reserved_peak.count()}};
    if (p.device) phase["device_bytes"] = p.device->count();
    phase["seconds"] = p.seconds;
    j["phases"].push_back(phase);
  }
  if (v.parting)
    j["parting"] = {{"step", v.parting->step == Parting::setup ? Json() : Json(v.parting->step)},  // null: the setup
                    {"event", v.parting->event},
                    {"estimated", v.parting->predicted},
                    {"measured", v.parting->measured}};
  return j;
}

std::string dumped(const Json& j) { return j.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string table(const VerifiedRow& row, const TableStyle& style) {
  const Text text(style);
  const Verification& v = row.verification;
  std::string out = text.bold(printable(row.name, 200)) + "\n";
  if (!v.ran()) return out + text.bad("no measurement: ") + printable(v.measured.message, 400) + "\n";
  const MeasuredDevice& d = v.measured.device;
  out += text.dim(fmt::format("{} · driver {} · torch {} · CUDA {} · cuDNN {}\n", printable(d.name), d.driver, d.torch,
                              d.cuda, d.cudnn));
  if (d.others.count() > 0) out += text.dim("other processes use " + human(d.others) + " of the card\n");
  out += fmt::format("\n{:<22}{:>12}{:>12}{:>12}   {}\n", "", "estimated", "measured", "margin", "error");
  for (const Figure& f : figures(v))
    out += fmt::format("  {:<20}{:>12}{:>12}{:>12}   {}\n", f.name, human(f.estimated),
                       f.measured ? human(*f.measured) : "?", human(f.margin),
                       f.measured ? error_text(f.estimated, *f.measured) : "");
  out += fmt::format("\n{:<22}{:>12}{:>12}{:>15}\n", "allocated, by phase", "estimated", "measured", "error");
  for (const Phase p : {Phase::forward, Phase::backward, Phase::optimizer}) {
    const Bytes measured = peak_of(v.measured.phases, p, &MeasuredPhase::allocated_peak);
    if (measured.count() == 0) continue;
    const Bytes estimated = peak_of(v.estimate.phases, p, &PhaseFigures::allocated_peak);
    out += fmt::format("  {:<20}{:>12}{:>12}{:>15}\n", name_of(p), human(estimated), human(measured),
                       error_text(estimated, measured));
  }
  if (v.measured.outcome == Measurement::Outcome::out_of_memory)
    out += "\n" + printable(v.measured.message, 400) + "\n  at " + place(v.measured) + "\n";
  if (v.parting)
    out += fmt::format("\nthe events part in {}, event {}\n  estimated  {}\n  measured   {}\n",
                       v.parting->step == Parting::setup ? "the setup" : fmt::format("step {}", v.parting->step),
                       v.parting->event, printable(v.parting->predicted.empty() ? "none" : v.parting->predicted, 200),
                       printable(v.parting->measured.empty() ? "none" : v.parting->measured, 200));
  return out + "\n" + (v.holds() ? text.good(verdict(v)) : text.bad(verdict(v))) + "\n";
}

std::string table(const std::vector<VerifiedRow>& rows, const TableStyle& style) {
  const Text text(style);
  std::string out =
      text.bold(fmt::format("{:>12}{:>12}{:>12}  {:<18} {}\n", "allocated", "reserved", "device", "", ""));
  std::size_t held = 0;
  for (const VerifiedRow& row : rows) {
    const Verification& v = row.verification;
    held += v.holds() ? 1 : 0;
    std::string errors;
    for (const Figure& f : figures(v))
      errors += fmt::format("{:>12}", v.ran() && f.measured ? error_text(f.estimated, *f.measured) : "");
    const std::string said = fmt::format("{:<18}", clipped(verdict(v), 60));
    out += errors + "  " + (v.holds() ? text.good(said) : text.bad(said)) + " " + printable(row.name, 160) + "\n";
  }
  return out + fmt::format("{} of {} within the margin\n", held, rows.size());
}

std::string json(const std::vector<VerifiedRow>& rows) {
  Json j{{"schema_version", 1}, {"rows", Json::array()}};
  for (const VerifiedRow& row : rows) j["rows"].push_back(json_of(row));
  return dumped(j);
}

std::string events_json(const Verification& v) {
  return dumped({{"schema_version", 1},
                 {"step", v.last_step.step},
                 {"estimated", v.last_step.predicted},
                 {"measured", v.last_step.measured}});
}

std::string table(const LargestBatch& b) {
  std::string out = fmt::format("largest batch: {} estimated, {} measured\n", b.predicted, b.measured);
  for (const auto& [batch, ran] : b.runs)
    out += fmt::format("  batch {:<8} {}\n", batch, ran ? "ran" : "out of memory");
  return out;
}

std::string json(const LargestBatch& b) {
  Json j{{"schema_version", 1}, {"predicted", b.predicted}, {"measured", b.measured}, {"runs", Json::array()}};
  for (const auto& [batch, ran] : b.runs) j["runs"].push_back({{"batch", batch}, {"ran", ran}});
  return dumped(j);
}

}  // namespace headroom::report
