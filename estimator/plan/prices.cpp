#include "estimator/plan/prices.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/plan/cards.h"

namespace headroom {
namespace {

constexpr std::size_t largest_file = 1 << 20;

/// RFC 4180, but for line breaks inside of quotes. Throws when a quote is not closed.
std::vector<std::string> fields_of(std::string_view line, const std::string& where) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      out.back() += line[i++];
    else if (line[i] == '"')
      quoted = !quoted;
    else if (line[i] == ',' && !quoted)
      out.emplace_back();
    else
      out.back() += line[i];
  }
  if (quoted) throw bad_input("a quote is not closed", where);
  for (std::string& f : out) f = std::string(trim(f));
  return out;
}

std::string text_of_file(const std::string& path) {
  std::string text(largest_file + 1, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() && file.fail()) throw bad_input("cannot be read", path, "--prices wants a CSV file");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > largest_file) throw bad_input("is larger than 1 MiB", path);
  return text;
}

double price_of(const std::string& text, const std::string& where) {
  double price = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), price);
  if (problem != std::errc{} || end != text.data() + text.size() || !(price >= 0) || !std::isfinite(price))
    throw bad_input("'" + printable(text) + "' is no price", where, "a plain number, for example 2.49");
  return price;
}

}  // namespace

Prices Prices::read(const std::string& path) {
  const std::string text = text_of_file(path);
  constexpr std::size_t none = ~std::size_t{0};
  std::size_t gpu = none, price = none, currency = none;
  Prices out;
  int number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    const std::string where = path + ":" + std::to_string(++number);
    const std::string_view line = trim(raw.starts_with("\xEF\xBB\xBF") ? raw.substr(3) : raw);
    if (line.empty()) continue;
    const std::vector<std::string> fields = fields_of(line, where);
    if (gpu == none) {
      const auto column = [&fields](std::string_view name) {
        const auto at = std::find(fields.begin(), fields.end(), name);
        return at == fields.end() ? none : static_cast<std::size_t>(at - fields.begin());
      };
      gpu = column("gpu");
      price = column("price");
      currency = column("currency");
      if (gpu == none || price == none)
        throw bad_input("its first line does not name the columns gpu and price", where,
                        "for example: gpu,price,currency");
      continue;
    }
    if (fields.size() <= std::max(gpu, price)) throw bad_input("the line has too few fields", where);
    const Price p{.per_hour = price_of(fields[price], where),
                  .currency = currency < fields.size() ? fields[currency] : ""};
    std::string name;
    try {
      name = card_named(fields[gpu]).name;
    } catch (const Error& e) {
      throw bad_input(e.what(), where, e.hint());
    }
    const auto known =
        std::find_if(out.by_card_.begin(), out.by_card_.end(), [&](const auto& c) { return c.first == name; });
    if (known == out.by_card_.end())
      out.by_card_.emplace_back(name, p);
    else if (known->second.currency != p.currency)
      throw bad_input("two currencies for one card", where);
    else if (p.per_hour < known->second.per_hour)
      known->second = p;
  }
  if (gpu == none) throw bad_input("is empty", path, "for example: gpu,price,currency");
  return out;
}

std::optional<Price> Prices::of(std::string_view card) const {
  for (const auto& [name, price] : by_card_)
    if (name == card) return price;
  return std::nullopt;
}

}  // namespace headroom
