#include <fmt/format.h>

#include "estimator/report/escape.h"
#include "estimator/report/figures.h"
#include "estimator/report/report.h"

namespace headroom::report {

std::string csv(const Estimate& e) {
  std::string out = "model,kind,name,bytes,share\n";
  const std::string model = csv_field(e.model.name);
  const auto row = [&](const char* kind, std::string_view name, Bytes bytes, const std::string& share) {
    out += fmt::format("{},{},{},{},{}\n", model, kind, csv_field(name), bytes.count(), share);
  };
  row("peak", "allocated", e.peak_allocated, "");
  row("peak", "reserved", e.peak_reserved, "");
  row("peak", "device", e.peak_device, "");
  if (e.budget) row("budget", "device", *e.budget, "");
  row("margin", "allocated", e.margin_allocated, "");
  row("margin", "reserved", e.margin_reserved, "");
  row("margin", "device", e.margin_device, "");
  for (const CategoryRow& c : category_rows(e)) row("category", c.key, c.bytes, fmt::format("{:.6f}", c.share));
  for (const PhaseRow& p : phase_rows(e)) {
    row("phase allocated", name_of(p.phase), p.allocated, "");
    row("phase reserved", name_of(p.phase), p.reserved, "");
  }
  return out;
}

}  // namespace headroom::report
