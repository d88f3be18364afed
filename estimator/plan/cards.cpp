#include "estimator/plan/cards.h"

#include <nlohmann/json.hpp>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

extern const char headroom_gpus_json[];
extern const char headroom_gpus_json_end[];

namespace headroom {
namespace {

/// Case, separators and the maker do not count: "NVIDIA GeForce RTX 4090", "RTX 4090" and "rtx4090" are one card.
std::string normal(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != ' ' && c != '-' && c != '_') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  for (const std::string_view maker : {"nvidia", "geforce"})
    if (out.starts_with(maker)) out.erase(0, maker.size());
  return out;
}

std::vector<Card> load() {
  const auto file = nlohmann::json::parse(headroom_gpus_json, headroom_gpus_json_end);
  std::vector<Card> out;
  for (const auto& row : file.at("cards")) {
    Card c;
    c.name = row.at("name");
    c.aliases = row.value("aliases", std::vector<std::string>{});
    c.device.name = c.name;
    c.device.total_bytes = Bytes(row.at("total_bytes").get<std::int64_t>());
    const std::string capability = row.at("compute_capability");
    const auto parts = split(capability, '.');
    c.device.compute_major = static_cast<int>(parse_int(parts.at(0)).value());
    c.device.compute_minor = static_cast<int>(parse_int(parts.at(1)).value());
    c.device.sm_count = row.at("sm_count");
    // Volta, Hopper and the data-centre Ampere and Blackwell parts hold 2,048 threads an SM; 8.6, 8.9 and 12.x hold
    // 1,536; Turing 1,024 (CUDA C programming guide, compute capabilities).
    const int cc = c.device.compute_major * 10 + c.device.compute_minor;
    c.device.threads_per_sm = cc == 75 ? 1024 : (cc == 86 || cc == 87 || cc == 89 || cc >= 120) ? 1536 : 2048;
    c.device.generation = row.at("generation");
    c.estimated = row.value("estimated", false);
    c.usual = row.value("usual", false);
    c.source = row.at("source");
    for (const auto& i : row.value("cloud", nlohmann::json::array()))
      c.cloud.push_back({i.at("provider"), i.at("instance"), i.at("gpus")});
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace

const std::vector<Card>& cards() {
  static const std::vector<Card> all = load();
  return all;
}

const Card& card_named(std::string_view name) {
  const std::string wanted = normal(name);
  std::vector<std::string> names;
  std::string longer;  // the first name that goes on where this one ends
  for (const Card& c : cards()) {
    std::vector<std::string> own = c.aliases;
    own.insert(own.begin(), c.name);
    for (const std::string& n : own) {
      const std::string known = normal(n);
      if (known == wanted) return c;
      if (longer.empty() && !wanted.empty() && known.starts_with(wanted)) longer = n;
      names.push_back(n);
    }
  }
  const std::string_view near = longer.empty() ? nearest(wanted, names) : std::string_view(longer);
  throw usage_error("no card is named '" + printable(name) + "'", "",
                    near.empty() ? "`headroom gpus` lists them; --memory 24GiB serves for any other"
                                 : "did you mean '" + std::string(near) + "'?");
}

}  // namespace headroom
