#include "estimator/plan/owners.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace headroom {
namespace {

/// Some of an owner's bytes.
struct Share {
  std::string_view owner;
  Category category;
  Bytes bytes;
};

/// Of a parameter or buffer: the module that its name begins with.
std::string_view registrar(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

}  // namespace

std::vector<OwnedBytes> owners_of(const std::vector<LiveBlock>& live, const shadow::Trace& trace,
                                  const Program& program) {
  std::vector<std::array<Bytes, category_count>> of_modules(program.modules.size());
  std::map<std::pair<std::int32_t, Category>, Bytes> of_statements;
  std::vector<Share> shares;
  const auto add_share = [&](const Share& s) {  // a module's own often follow one another
    if (!shares.empty() && shares.back().owner == s.owner && shares.back().category == s.category)
      shares.back().bytes += s.bytes;
    else
      shares.push_back(s);
  };
  for (const LiveBlock& l : live) {
    const auto& block = trace.blocks[static_cast<std::size_t>(l.block)];
    if (block.module.valid())
      of_modules[block.module.at()][static_cast<std::size_t>(l.category)] += block.bytes;
    else if (l.category == Category::weights || l.category == Category::buffers)
      add_share({block.name >= 0 ? registrar(trace.texts[static_cast<std::size_t>(block.name)]) : "", l.category,
                 block.bytes});
    else
      of_statements[{block.site, l.category}] += block.bytes;
  }
  for (std::size_t m = 0; m < of_modules.size(); ++m)
    for (std::size_t c = 0; c < category_count; ++c)
      if (of_modules[m][c].count() > 0)
        shares.push_back({program.modules[m].path, static_cast<Category>(c), of_modules[m][c]});
  std::vector<std::string> statements;
  statements.reserve(of_statements.size());  // shares look into it
  for (const auto& [statement, bytes] : of_statements) {
    const auto [site, category] = statement;
    statements.push_back(
        "(" + (site >= 0 ? trace.texts[static_cast<std::size_t>(site)] : std::string(name_of(category))) + ")");
    shares.push_back({statements.back(), category, bytes});
  }

  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return std::tie(a.owner, a.category) < std::tie(b.owner, b.category);
  });
  std::vector<OwnedBytes> out;
  for (const Share& s : shares) {
    if (out.empty() || out.back().module != s.owner || out.back().category != s.category)
      out.push_back({std::string(s.owner), s.category, {}});
    out.back().bytes += s.bytes;
  }
  return out;
}

}  // namespace headroom
