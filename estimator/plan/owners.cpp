#include "estimator/plan/owners.h"

#include <map>
#include <string>
#include <utility>

namespace headroom {
namespace {

std::string owner_of(const shadow::TraceBlock& b, Category category, const shadow::Trace& trace,
                     const Program& program) {
  if (b.module.valid()) return std::string(program.module_path(b.module));
  if (category == Category::weights || category == Category::buffers) {
    const std::string path = b.name >= 0 ? trace.texts[static_cast<std::size_t>(b.name)] : "";
    const auto dot = path.rfind('.');
    return dot == std::string::npos ? "" : path.substr(0, dot);
  }
  return "(" + (b.site >= 0 ? trace.texts[static_cast<std::size_t>(b.site)] : std::string(name_of(category))) + ")";
}

}  // namespace

std::vector<OwnedBytes> owners_of(const std::vector<LiveBlock>& live, const shadow::Trace& trace,
                                  const Program& program) {
  std::map<std::pair<std::string, Category>, Bytes> sums;
  for (const LiveBlock& l : live) {
    const auto& block = trace.blocks[static_cast<std::size_t>(l.block)];
    sums[{owner_of(block, l.category, trace, program), l.category}] += block.bytes;
  }
  std::vector<OwnedBytes> out;
  out.reserve(sums.size());
  for (const auto& [owner, bytes] : sums) out.push_back({owner.first, owner.second, bytes});
  return out;
}

}  // namespace headroom
