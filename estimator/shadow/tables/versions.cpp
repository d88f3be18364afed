// The committed tables, and which of them stands for a torch version.
#include <array>
#include <cstdlib>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/shadow/tables/aten_table.h"

extern "C" {
extern const char headroom_aten_2_11[], headroom_aten_2_11_end[];
extern const char headroom_aten_2_13[], headroom_aten_2_13_end[];
extern const char headroom_helpers[], headroom_helpers_end[];
}

namespace headroom::aten {
namespace {

constexpr std::array<std::string_view, 2> versions{"2.11", "2.13"};

const Table& committed(std::size_t i) {
  static const HelperTable helpers({headroom_helpers, headroom_helpers_end});
  if (i == 0) {
    static const Table table({headroom_aten_2_11, headroom_aten_2_11_end}, helpers);
    return table;
  }
  static const Table table({headroom_aten_2_13, headroom_aten_2_13_end}, helpers);
  return table;
}

/// "2.11.0+cu130" -> 2011; -1 when it is no version.
std::int64_t release(std::string_view version) {
  const auto parts = split(version.substr(0, version.find('+')), '.');
  if (parts.size() < 2) return -1;
  const auto major = parse_int(parts[0]), minor = parse_int(parts[1]);
  if (!major || !minor || *major < 0 || *major > 99 || *minor < 0 || *minor > 999) return -1;
  return *major * 1000 + *minor;
}

}  // namespace

ChosenTable table_for(std::string_view torch_version) {
  const std::int64_t wanted = release(torch_version);
  if (wanted < 0) throw usage_error("'" + printable(torch_version) + "' is no torch version", "--torch", "e.g. 2.11");
  std::size_t best = 0;
  for (std::size_t i = 1; i < versions.size(); ++i)
    if (std::abs(release(versions[i]) - wanted) < std::abs(release(versions[best]) - wanted)) best = i;
  return {&committed(best), release(versions[best]) == wanted};
}

std::span<const std::string_view> table_versions() { return versions; }

}  // namespace headroom::aten
