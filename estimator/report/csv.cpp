#include <fmt/format.h>

#include "estimator/base/text.h"
#include "estimator/report/figures.h"
#include "estimator/report/report.h"

namespace headroom::report {
namespace {

/// RFC 4180 quoting; a leading = + - @ or control character is kept from being a formula by a quote in front.
std::string field(std::string_view s) {
  std::string clean = printable(s, 4000);
  if (!clean.empty() && std::string_view("=+-@").find(clean[0]) != std::string_view::npos) clean.insert(0, "'");
  if (clean.find_first_of(",\"\n") == std::string::npos) return clean;
  std::string out = "\"";
  for (const char c : clean) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string csv(const Estimate& e) {
  std::string out = "model,kind,name,bytes,share\n";
  const std::string model = field(e.model.name);
  const auto row = [&](const char* kind, std::string_view name, Bytes bytes, const std::string& share) {
    out += fmt::format("{},{},{},{},{}\n", model, kind, field(name), bytes.count(), share);
  };
  row("peak", "allocated", e.peak_allocated, "");
  row("peak", "reserved", e.peak_reserved, "");
  row("peak", "device", e.peak_device, "");
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
